// Page-aligned, zeroed, resident memory for registered buffers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/memory_share.hpp"
#include "common/units.hpp"

namespace verbscope {

// transparent: ordinary pages that the kernel is asked to make huge ones of, as far as it has them.
enum class PageSize { kb4, mb2, transparent };

class Buffer {
 public:
  // Allocates at least `size` bytes (> 0), zeroed, every page touched. Asks for huge pages first when `huge_pages`;
  // when there are none falls back to ordinary pages and describe() says so. Throws when the machine has not so
  // much memory free, before it takes any.
  explicit Buffer(Bytes size, bool huge_pages = true);
  // Allocates them on pages of exactly this size, or such as `transparent` says; throws when the machine has none of
  // it.
  Buffer(Bytes size, PageSize pages);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }  // bytes asked for
  std::span<std::byte> bytes() const { return {data_, size_}; }
  bool huge() const { return huge_; }
  // One line for the person: "4194304 bytes on 2 MB huge pages", or on which pages instead and why.
  const std::string& describe() const { return description_; }

 private:
  bool map_huge();
  void map_transparent();
  void map_ordinary(bool may_grow);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
  bool huge_ = false;
  std::string description_;
  MemoryShare share_;  // none of huge pages, which were set apart before
};

}  // namespace verbscope
