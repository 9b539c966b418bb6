#include "microbench/loop/payload.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "common/hash.hpp"
#include "wire/pcie.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

namespace {

constexpr int kUnwritten = 0xff;  // no slot has this number

}  // namespace

std::uint64_t payload_stride(std::uint32_t payload) {
  return round_up(std::max(payload, 1u), kSlotAlignment);
}

std::uint32_t payload_slots(std::uint32_t payload) {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kPayloadPool / payload_stride(payload), 1, kMaxPayloadSlots));
}

std::uint32_t immediate_of(std::uint32_t slot) {
  return htonl(kImmediateMagic | slot);
}

void fill_payload(std::uint64_t seed, std::uint32_t slot, std::span<std::byte> bytes) {
  const std::uint64_t key = mix(seed ^ mix(slot));
  for (std::size_t offset = 0; offset < bytes.size(); ++offset) {
    bytes[offset] = static_cast<std::byte>(mix(key + offset / 8) >> (offset % 8 * 8));
  }
  if (!bytes.empty()) bytes[0] = static_cast<std::byte>(slot);
}

PayloadChecker::PayloadChecker(const Operation& operation)
    : payload_(operation.payload),
      expected_length_(operation.payload + facts(operation.transport).grh_room),
      header_only_(operation.header_only),
      slots_(payload_slots(operation.payload)),
      expected_(std::size_t{slots_} * operation.payload) {
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    fill_payload(operation.seed, slot, std::span(expected_).subspan(std::size_t{slot} * payload_, payload_));
  }
}

bool PayloadChecker::good(const ibv_wc& wc, std::byte* payload) {
  if (wc.byte_len != expected_length_) return false;
  const bool with_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (with_immediate != header_only_) return false;
  if (header_only_) return (ntohl(wc.imm_data) & ~0xffu) == kImmediateMagic && (ntohl(wc.imm_data) & 0xff) < slots_;
  return bytes_good(payload);
}

bool PayloadChecker::bytes_good(std::byte* payload) {
  if (payload_ == 0) return true;
  const bool same = payload_good(payload);
  std::memset(payload, kUnwritten, payload_);
  return same;
}

PayloadChecker::Lines PayloadChecker::lines(std::span<const std::byte> place) const {
  const auto zero = [](std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
  };
  Lines found = Lines::untouched;
  for (std::size_t offset = 0; offset < place.size(); offset += kCacheLine.value) {
    const std::size_t bytes = offset < payload_ ? std::min<std::size_t>(kCacheLine.value, payload_ - offset) : 0;
    const auto line = place.subspan(offset, kCacheLine.value);
    if (zero(line)) continue;
    if (bytes == 0 || !zero(line.subspan(bytes)) || !line_good(line.data(), offset, bytes)) return Lines::wrong;
    found = Lines::good;
  }
  return found;
}

bool PayloadChecker::line_good(const std::byte* line, std::size_t offset, std::size_t bytes) const {
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    if (std::memcmp(line, expected_.data() + std::size_t{slot} * payload_ + offset, bytes) == 0) return true;
  }
  return false;
}

bool PayloadChecker::payload_good(const std::byte* payload) const {
  const auto slot = static_cast<std::uint32_t>(payload[0]);
  return slot < slots_ && std::memcmp(payload, expected_.data() + std::size_t{slot} * payload_, payload_) == 0;
}

}  // namespace verbscope
