// Page-aligned, zeroed, resident memory for registered buffers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/memory_share.hpp"
#include "common/units.hpp"

namespace verbscope {

// transparent: ordinary pages that the kernel may combine into huge ones. on_demand: ordinary pages that exist once
// they are touched, and are not counted before; for large memory of simulated machines that is hardly used.
enum class PageSize { kb4, mb2, transparent, on_demand };

class Buffer {
 public:
  // Allocates at least `size` bytes (> 0), zeroed, with every page touched. With `huge_pages`, tries huge pages first
  // and falls back to ordinary ones; describe() reports that. Throws, before allocating, if the machine does not have
  // enough free memory.
  explicit Buffer(Bytes size, bool huge_pages = true);
  // Allocates on pages of exactly this kind; except with on_demand, every page is touched. Throws if the machine has
  // none.
  Buffer(Bytes size, PageSize pages);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }  // bytes requested
  std::span<std::byte> bytes() const { return {data_, size_}; }
  bool huge() const { return huge_; }
  // One line for the user: "4194304 bytes on huge pages of 2 MiB", or the other kind of pages with the reason.
  const std::string& describe() const { return description_; }

 private:
  bool map_huge();
  void map_transparent();
  void map_ordinary(bool may_grow);
  void map_on_demand();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
  bool huge_ = false;
  std::string description_;
  MemoryShare share_;  // not for huge pages, which are reserved in advance
};

}  // namespace verbscope
