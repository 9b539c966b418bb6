// Memory that a program takes in large amounts: what the machine has not is refused before the kernel gives it page by
// page, until it ends programs.
#pragma once

#include <cstddef>
#include <utility>

namespace verbscope {

// What one owner has of the memory that the machine had free (MemAvailable) when the program first asked. It counts,
// and allocates nothing.
class MemoryShare {
 public:
  MemoryShare() = default;
  MemoryShare(MemoryShare&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryShare& operator=(MemoryShare&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryShare();

  // Adds to it; throws Error, with the amounts, when all owners together would have more than was free. Where they pass
  // 1 GB, and each time they have doubled since, standard error is told. `what` is what the bytes are for: "buffers".
  void add(std::size_t bytes, const char* what);

 private:
  std::size_t bytes_ = 0;
};

}  // namespace verbscope
