// An object that a cache may hold has a CachePlace as its member `place`.
#pragma once

#include <cstdint>

namespace verbscope::sim {

// It says where a cache has the entry.
struct CachePlace {
  std::uint32_t number = 0;  // places count from 1; 0: it has none
  bool cached() const { return number > 0; }
};

}  // namespace verbscope::sim
