// Canonical's C-Raft (libraft-dev), whose header does not declare C linkage, and owners of its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

extern "C" {
#include <raft.h>
}

namespace verbscope {

// Memory that the library takes over. Throws std::bad_alloc.
template <class T>
T* raft_array(std::size_t count) {
  void* const memory = raft_malloc(count * sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

}  // namespace verbscope
