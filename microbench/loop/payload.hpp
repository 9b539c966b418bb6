// The bytes that messages carry, and the check of those that arrive. A message's bytes are a function of the seed, its
// slot and the offset; the slot is in the first byte, or in the immediate of a header-only message.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/units.hpp"
#include "microbench/bench/plan.hpp"

namespace verbscope {

inline constexpr std::uint32_t kMaxPayloadSlots = 16;
inline constexpr std::uint32_t kSlotAlignment = 128;          // a payload starts where a read completion may (RCB)
inline constexpr std::uint32_t kImmediateMagic = 0x56534300;  // "VSC", the slot in the low byte
inline constexpr std::uint64_t kPayloadPool = std::uint64_t{1} << 20;  // bytes that the slots of a thread may take

// Bytes from one payload slot to the next.
std::uint64_t payload_stride(std::uint32_t payload);
// How many slots the payloads of a thread have.
std::uint32_t payload_slots(std::uint32_t payload);

// Bytes from a multiple of kSlotAlignment to the beginning of a message that ends where its slot ends.
constexpr std::uint64_t offset_before_end(std::uint32_t payload) {
  return (kSlotAlignment - payload % kSlotAlignment) % kSlotAlignment;
}

// The immediate of a header-only message, in network order.
std::uint32_t immediate_of(std::uint32_t slot);

// Fills `bytes` with the message of `slot`.
void fill_payload(std::uint64_t seed, std::uint32_t slot, std::span<std::byte> bytes);

// Checks received messages; made once in setup, allocates nothing afterwards.
class PayloadChecker {
 public:
  explicit PayloadChecker(const Operation& operation);

  // Whether the completion and the payload it stands for (behind the GRH on UD) are what a sender sends. Overwrites the
  // payload, so that a message that writes nothing is not taken for the one before it.
  bool good(const ibv_wc& wc, std::byte* payload);
  // Like good(), for the bytes that a READ brought, which have no completion of their own. They may be any slot's
  // message.
  bool bytes_good(std::byte* payload);

  enum class Lines { untouched, good, wrong };
  // Judges a place that any number of WRITEs may have gone to, a whole multiple of a cache line, zeroed before.
  Lines lines(std::span<const std::byte> place) const;

 private:
  bool payload_good(const std::byte* payload) const;
  bool line_good(const std::byte* line, std::size_t offset, std::size_t bytes) const;

  std::uint32_t payload_;
  std::uint32_t expected_length_;
  bool header_only_;
  std::uint32_t slots_;
  std::vector<std::byte> expected_;  // every slot's message
};

}  // namespace verbscope
