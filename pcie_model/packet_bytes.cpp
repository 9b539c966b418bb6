#include "pcie_model/packet_bytes.hpp"

#include <algorithm>

#include "wire/packet.hpp"

namespace verbscope {
namespace {

constexpr std::uint64_t kEveryPacket = kLrh.value + kBth.value + kIcrc.value + kVcrc.value;

std::uint64_t packet_count(Bytes payload, Bytes mtu) {
  return std::max<std::uint64_t>(1, divide_up(payload.value, mtu.value));
}

// Each packet's payload is padded; full packets need no padding, since an MTU is a multiple of 4.
std::uint64_t padded(Bytes payload) {
  return round_up(payload.value, kPayloadPad.value);
}

}  // namespace

Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu) {
  const Bytes carried = facts(verb).carries_payload ? payload : Bytes(0);
  const std::uint64_t each = kEveryPacket + facts(transport).packet_header.value;
  const std::uint64_t once = facts(verb).request_header.value + (immediate ? kImmDt.value : 0);
  return Bytes(packet_count(carried, mtu) * each + once + padded(carried));
}

Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu) {
  if (!facts(verb).wants_response) return Bytes(0);
  const Bytes carried = facts(verb).atomic ? Bytes(0) : payload;  // what an atomic brings is in its extension header
  const std::uint64_t packets = packet_count(carried, mtu);
  const std::uint64_t once = std::min<std::uint64_t>(packets, 2) * kAeth.value + facts(verb).response_header.value;
  return Bytes(packets * kEveryPacket + once + padded(carried));
}

}  // namespace verbscope
