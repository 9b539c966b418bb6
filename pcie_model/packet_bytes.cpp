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
  if (verb == Verb::read) return Bytes(kEveryPacket + kReth.value);
  if (is_atomic(verb)) return Bytes(kEveryPacket + kAtomicEth.value);
  const std::uint64_t packets = packet_count(payload, mtu);
  const std::uint64_t datagram = transport == Transport::ud ? kDeth.value : 0;
  const std::uint64_t once = (verb == Verb::write ? kReth.value : 0) + (immediate ? kImmDt.value : 0);
  return Bytes(packets * (kEveryPacket + datagram) + once + padded(payload));
}

Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu) {
  if (is_atomic(verb)) return Bytes(kEveryPacket + kAeth.value + kAtomicAckEth.value);
  if (verb != Verb::read) return Bytes(0);
  const std::uint64_t packets = packet_count(payload, mtu);
  return Bytes(packets * kEveryPacket + std::min<std::uint64_t>(packets, 2) * kAeth.value + padded(payload));
}

}  // namespace verbscope
