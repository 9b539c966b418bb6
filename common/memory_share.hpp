// Accounts for large allocations, so that a request beyond the machine's free memory fails at once. Otherwise the
// kernel grants it page by page, until it kills programs.
#pragma once

#include <cstddef>
#include <utility>

namespace verbscope {

// One owner's share of the memory that was free (MemAvailable) at the program's first request. Only counts; allocates
// nothing.
class MemoryShare {
 public:
  MemoryShare() = default;
  MemoryShare(MemoryShare&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryShare& operator=(MemoryShare&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryShare();

  // Increases the share. Throws Error, with the amounts, if all shares together exceed the free memory. Prints a line
  // on standard error when their sum passes 1 GB, and at each doubling after that. `what`: use of the bytes, "buffers".
  void add(std::size_t bytes, const char* what);

 private:
  std::size_t bytes_ = 0;
};

}  // namespace verbscope
