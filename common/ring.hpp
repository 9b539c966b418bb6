// A ring buffer addressed by running numbers. Its size is a power of two, so that a mask converts a number to a place.
// The user keeps the counters: of work requests, completions, or queues with room.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace verbscope {

template <class T>
class Ring {
 public:
  Ring() : Ring(1) {}
  explicit Ring(std::size_t wanted) { resize(wanted); }
  // Makes room for at least `wanted` elements (at most 2^32). The previous content is lost.
  void resize(std::size_t wanted) {
    const std::size_t places = std::bit_ceil(wanted);
    places_ = std::make_unique<T[]>(places);
    mask_ = static_cast<std::uint32_t>(places - 1);
  }
  std::size_t size() const { return std::size_t{mask_} + 1; }
  // The index of element `n`, for arrays parallel to the ring.
  std::size_t place(std::uint64_t n) const { return n & mask_; }
  T& operator[](std::uint64_t n) { return places_[n & mask_]; }
  const T& operator[](std::uint64_t n) const { return places_[n & mask_]; }

 private:
  std::unique_ptr<T[]> places_;
  std::uint32_t mask_ = 0;
};

}  // namespace verbscope
