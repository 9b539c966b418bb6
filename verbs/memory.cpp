#include "verbs/memory.hpp"

#include <fmt/format.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {
constexpr std::size_t kHugePage = 2 << 20;

// Null on failure, with errno. MAP_POPULATE touches every page.
void* map(std::size_t size, int extra_flags) {
  void* address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | extra_flags, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}
}  // namespace

Buffer::Buffer(Bytes size, bool huge_pages) : size_(size.value) {
  if (size_ == 0) fail("allocate a buffer of 0 bytes");
  std::string why_not = "not asked for";
  void* address = nullptr;
  if (huge_pages) {
    mapped_ = round_up(size_, kHugePage);
    address = map(mapped_, MAP_HUGETLB | MAP_HUGE_2MB);
    why_not = address == nullptr ? errno_text(errno) : "";
  }
  huge_ = address != nullptr;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (!huge_) {
    mapped_ = round_up(size_, page);
    address = check_pointer(fmt::format("allocate {} bytes", size_), map(mapped_, 0));
  }
  data_ = static_cast<std::byte*>(address);
  description_ = huge_
                     ? fmt::format("{} bytes on huge pages of 2 MiB", size_)
                     : fmt::format("{} bytes on ordinary pages of {} KiB; huge pages: {}", size_, page >> 10, why_not);
  if (!huge_ && huge_pages) description_ += " (see /proc/sys/vm/nr_hugepages)";
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      mapped_(other.mapped_),
      huge_(other.huge_),
      description_(std::move(other.description_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(huge_, other.huge_);
  std::swap(description_, other.description_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

}  // namespace verbscope
