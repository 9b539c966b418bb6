// The PUTs of a store whose GETs are one-sided: a message to the server's CPU, which answers. After FaRM the message is
// WRITTEN into one of the client's slots at the server, which polls them, and the answer is WRITTEN back; after Pilaf
// both are SENDs. All over UC, which may lose them.
//
// A client numbers its PUTs from 1 on. Message n is [value, key, tag], its last eight bytes the tag, which has the
// number and which try it is; of an emulated store [value, 8 bytes of the key, tag], so that it has the size of value
// and key. The server executes them in order, each once: it takes number last + 1 alone. Its answer is the number of
// the last that it has executed, which answers all before. A client that waits too long sends all again that are not
// answered, with another try in their tags; who has nothing to execute then answers again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/units.hpp"
#include "systems/one_sided/access.hpp"

namespace verbscope {

inline constexpr std::uint32_t kPutTagBytes = 8;
inline constexpr std::uint64_t kPutNumbers = std::uint64_t{1} << 40;

constexpr std::uint64_t put_tag(std::uint64_t number, std::uint64_t attempt) {
  return attempt * kPutNumbers + number % kPutNumbers;
}
constexpr std::uint64_t put_number(std::uint64_t tag) {
  return tag % kPutNumbers;
}

struct PutLayout {
  static constexpr std::uint64_t kLine = 64;

  std::uint32_t value_bytes = 0;
  bool emulated = false;
  std::uint32_t window = 1;  // PUTs of a client thread that are not answered

  std::uint32_t message_bytes() const { return value_bytes + kStoreKeyBytes + (emulated ? 0 : kPutTagBytes); }
  // Bytes from a slot to the next. A message ends where its slot ends, so that the tag is one aligned word.
  std::uint64_t stride() const { return round_up(message_bytes(), kLine); }
  std::uint64_t client_bytes() const { return window * stride(); }

  // The end of the slot of PUT `number`, from the first of the client's slots.
  std::uint64_t end_of(std::uint64_t number) const { return ((number - 1) % window + 1) * stride(); }
};

// Fills in all of a message but its tag. The message ends at `end`.
inline void set_put_key(const PutLayout& layout, std::byte* end, const lookups::KeyHash& key) {
  const std::uint32_t bytes = layout.emulated ? kStoreKeyBytes - kPutTagBytes : kStoreKeyBytes;
  std::memcpy(end - kPutTagBytes - bytes, &key, bytes);
}
inline lookups::KeyHash put_key(const std::byte* end) {
  lookups::KeyHash key;
  std::memcpy(&key, end - kPutTagBytes - sizeof key, sizeof key);
  return key;
}
inline const std::byte* put_value(const PutLayout& layout, const std::byte* end) {
  return end - layout.message_bytes();
}

}  // namespace verbscope
