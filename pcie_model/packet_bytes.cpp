#include "pcie_model/packet_bytes.hpp"

#include <algorithm>

#include "wire/packet.hpp"

namespace verbscope {
namespace {

std::uint64_t packet_count(Bytes payload, Bytes mtu) {
  return std::max<std::uint64_t>(1, divide_up(payload.value, mtu.value));
}

// Full packets need no padding, since an MTU is a multiple of 4.
std::uint64_t padded(Bytes payload) {
  return round_up(payload.value, kPayloadPad.value);
}

// Bytes of `packets` packets with `content` bytes in total, plus what the link adds to each. Only a single packet can
// be shorter than the smallest frame: a last packet has at least 4 bytes of content.
Bytes occupied(LinkType link, std::uint64_t packets, std::uint64_t content) {
  const LinkFacts& around = facts(link);
  const std::uint64_t frames = packets * around.around.value + content;
  return Bytes(std::max(frames, around.least_frame.value) + packets * around.between.value);
}

}  // namespace

Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu, LinkType link) {
  const Bytes carried = facts(verb).carries_payload ? payload : Bytes(0);
  const std::uint64_t packets = packet_count(carried, mtu);
  const std::uint64_t once = facts(verb).request_header.value + (immediate ? kImmDt.value : 0);
  return occupied(link, packets, packets * facts(transport).packet_header.value + once + padded(carried));
}

Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu, LinkType link) {
  if (!facts(verb).wants_response) return Bytes(0);
  const Bytes carried = facts(verb).atomic ? Bytes(0) : payload;  // an atomic's data is in its extension header
  const std::uint64_t packets = packet_count(carried, mtu);
  const std::uint64_t once = std::min<std::uint64_t>(packets, 2) * kAeth.value + facts(verb).response_header.value;
  return occupied(link, packets, once + padded(carried));
}

}  // namespace verbscope
