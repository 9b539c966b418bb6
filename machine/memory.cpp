#include "machine/memory.hpp"

#include <fmt/format.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kHugePage = 2 << 20;

// Maps memory; null on failure, with errno.
void* map(std::size_t size, int extra_flags) {
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

constexpr const char* kHugePagesHint = "(see /proc/sys/vm/nr_hugepages)";

}  // namespace

bool Buffer::map_huge() {
  mapped_ = round_up(size_, kHugePage);
  data_ = static_cast<std::byte*>(map(mapped_, MAP_POPULATE | MAP_HUGETLB | MAP_HUGE_2MB));
  huge_ = data_ != nullptr;
  if (huge_) description_ = fmt::format("{} bytes on huge pages of 2 MiB", size_);
  return huge_;
}

// Maps ordinary pages. With `may_grow`, the kernel may replace them by larger ones.
void Buffer::map_ordinary(bool may_grow) {
  mapped_ = round_up(size_, page_bytes());
  share_.add(mapped_, "buffers");
  const int touched = may_grow ? MAP_POPULATE : 0;
  data_ = static_cast<std::byte*>(check_pointer(fmt::format("allocate {} bytes", size_), map(mapped_, touched)));
  if (!may_grow) {
    madvise(data_, mapped_, MADV_NOHUGEPAGE);  // fails harmlessly if the kernel has no transparent huge pages
    std::memset(data_, 0, mapped_);
  }
  description_ = fmt::format("{} bytes on ordinary pages of {} KiB", size_, page_bytes() >> 10);
}

// Aligns the memory to huge pages: the kernel creates them only at their boundaries, when the memory is touched.
void Buffer::map_transparent() {
  mapped_ = round_up(size_, kHugePage);
  share_.add(mapped_ + kHugePage, "buffers");
  auto* const raw = static_cast<std::byte*>(
      check_pointer(fmt::format("allocate {} bytes", size_), map(mapped_ + kHugePage, MAP_NORESERVE)));
  const std::size_t before =
      round_up(reinterpret_cast<std::uintptr_t>(raw), kHugePage) - reinterpret_cast<std::uintptr_t>(raw);
  if (before > 0) munmap(raw, before);
  data_ = raw + before;
  if (before < kHugePage) munmap(data_ + mapped_, kHugePage - before);
  const bool asked = madvise(data_, mapped_, MADV_HUGEPAGE) == 0;
  std::memset(data_, 0, mapped_);
  description_ = fmt::format("{} bytes on ordinary pages, {}", size_,
                             asked ? "huge ones where the kernel has them" : "as this kernel has no huge ones");
}

void Buffer::map_on_demand() {
  mapped_ = round_up(size_, page_bytes());
  data_ = static_cast<std::byte*>(check_pointer(fmt::format("map {} bytes", size_), map(mapped_, MAP_NORESERVE)));
  madvise(data_, mapped_, MADV_NOHUGEPAGE);  // fails harmlessly if the kernel has no transparent huge pages
  description_ = fmt::format("{} bytes on ordinary pages of {} KiB, on demand", size_, page_bytes() >> 10);
}

Buffer::Buffer(Bytes size, bool huge_pages) : size_(size.value) {
  if (size_ == 0) fail("allocate a buffer of 0 bytes: the size must be at least 1");
  if (huge_pages && map_huge()) return;
  const std::string why_not = huge_pages ? fmt::format("{} {}", errno_text(errno), kHugePagesHint) : "not asked for";
  map_ordinary(true);
  description_ += "; huge pages: " + why_not;
}

Buffer::Buffer(Bytes size, PageSize pages) : size_(size.value) {
  if (size_ == 0) fail("allocate a buffer of 0 bytes: the size must be at least 1");
  if (pages == PageSize::mb2) {
    if (!map_huge()) fail("allocate {} bytes on huge pages of 2 MiB: {} {}", size_, errno_text(errno), kHugePagesHint);
    return;
  }
  if (pages == PageSize::transparent || pages == PageSize::on_demand) {
    pages == PageSize::transparent ? map_transparent() : map_on_demand();
    return;
  }
  if (page_bytes() != 4096)
    fail("allocate {} bytes on pages of 4 KiB: the pages of this machine have {} KiB", size_, page_bytes() >> 10);
  map_ordinary(false);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      mapped_(other.mapped_),
      huge_(other.huge_),
      description_(std::move(other.description_)),
      share_(std::move(other.share_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(huge_, other.huge_);
  std::swap(description_, other.description_);
  std::swap(share_, other.share_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

}  // namespace verbscope
