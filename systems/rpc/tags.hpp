// The immediates of requests and responses that go by SEND: who sends, and the low bits of a request's number.
#pragma once

#include <cstdint>

namespace verbscope {

// Bytes of a response that has no value and is no header alone: as in HERD's code, for mlx4 posts by BlueFlame what has
// inline bytes alone. A value has more.
inline constexpr std::uint32_t kStatusBytes = 1;

// An immediate: the thread of the server in a response, the client in a request by SEND; and the low bits of the
// request's number.
inline constexpr std::uint32_t kTagNumbers = 1u << 20;
inline constexpr std::uint32_t kMaxTagged = 1u << 12;  // threads, clients
constexpr std::uint32_t tag_of(std::uint32_t who, std::uint64_t number) {
  return who * kTagNumbers + static_cast<std::uint32_t>(number % kTagNumbers);
}
constexpr std::uint32_t tagged(std::uint32_t tag) {
  return tag / kTagNumbers;
}
// The number whose low bits a tag has, nearest to `near`.
constexpr std::uint64_t tagged_number(std::uint32_t tag, std::uint64_t near) {
  constexpr std::int64_t kHalf = kTagNumbers / 2;
  const auto ahead = static_cast<std::int64_t>((tag - near) % kTagNumbers);
  return near + static_cast<std::uint64_t>(ahead < kHalf ? ahead : ahead - 2 * kHalf);
}

}  // namespace verbscope
