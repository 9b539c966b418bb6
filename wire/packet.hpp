// Packets on the wire: header sizes, and what each link type adds to a packet. InfiniBand Architecture Specification
// 1.3, volume 1, chapters 7 to 9 (sections 7.7 LRH, 8.3 GRH, 9.2 BTH, 9.3 extended transport headers, 7.8 CRCs); for
// RoCE v2 its annex A17, RFC 791 and 768, and IEEE 802.3 (clauses 3.1.1 and 4.4.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/enum_table.hpp"
#include "common/units.hpp"

namespace verbscope {

inline constexpr Bytes kLrh{8};              // every InfiniBand packet
inline constexpr Bytes kGrh{40};             // packets whose address requests it (RoCE v1: every packet)
inline constexpr Bytes kBth{12};             // every packet
inline constexpr Bytes kReth{16};            // first or only WRITE packet, READ request
inline constexpr Bytes kDeth{8};             // every packet of UD
inline constexpr Bytes kXrcEth{4};           // every request packet of XRC (annex A14)
inline constexpr Bytes kAeth{4};             // acknowledgement; first, last and only READ response; atomic response
inline constexpr Bytes kImmDt{4};            // last or only packet of an operation with immediate
inline constexpr Bytes kIeth{4};             // last or only packet of a SEND that invalidates a key
inline constexpr Bytes kAtomicEth{28};       // atomic request
inline constexpr Bytes kAtomicAckEth{8};     // atomic response
inline constexpr Bytes kIcrc{4};             // every packet
inline constexpr Bytes kVcrc{2};             // every InfiniBand packet
inline constexpr Bytes kEthernetHeader{14};  // every Ethernet frame, without a VLAN tag
inline constexpr Bytes kIpv4Header{20};      // every packet of RoCE v2 over IPv4
inline constexpr Bytes kIpv6Header{40};      // every packet of RoCE v2 over IPv6 (RFC 8200)
inline constexpr Bytes kUdpHeader{8};        // every packet of RoCE v2
inline constexpr Bytes kFcs{4};              // every Ethernet frame
inline constexpr Bytes kMinFrame{64};        // including the FCS
inline constexpr Bytes kPreamble{8};         // before a frame, including its delimiter
inline constexpr Bytes kInterpacketGap{12};  // after a frame
inline constexpr Bytes kPayloadPad{4};       // the payload of a packet is padded to this (BTH PadCnt, section 9.2)

// Bytes of the longest message: section 9.7.7.
inline constexpr std::uint32_t kLongestMessage = 1u << 31;

// True if a switch has marked a received datagram for congestion (RFC 3168: both ECN bits of its IP header are set).
// `room`: the kGrh bytes before its payload. RoCE v2 has an IPv6 header there, or an IPv4 header at the end of that
// room (annex A17.9.2).
inline bool is_ecn_marked(const std::byte* room) {
  const auto byte_at = [room](std::size_t at) { return std::to_integer<unsigned>(room[at]); };
  const bool ipv6 = byte_at(0) >> 4 == 6;
  return ipv6 ? (byte_at(1) >> 4 & 3) == 3 : (byte_at(kGrh.value - kIpv4Header.value + 1) & 3) == 3;
}
inline constexpr std::uint8_t kEcnCapable = 2;  // in a traffic class: switches may mark the packet instead (ECT(0))

enum class LinkType : std::uint8_t { infiniband, roce_v2 };

struct LinkFacts {
  LinkType value;
  std::string_view name;  // in profiles and records
  bool ethernet;
  Bytes overhead;   // per packet: headers up to and including the BTH, and CRCs after the payload
  Bytes min_frame;  // shorter packets are padded to this; 0: no padding
  Bytes gap;        // time for which the port is in use between packets, in bytes; 0: none is documented
};

inline constexpr EnumTable<LinkType, LinkFacts> kLinkTypes{{
    {.value = LinkType::infiniband,
     .name = "infiniband",
     .ethernet = false,
     .overhead = kLrh + kBth + kIcrc + kVcrc,
     .min_frame = Bytes(0),
     .gap = Bytes(0)},
    {.value = LinkType::roce_v2,
     .name = "roce_v2",
     .ethernet = true,
     .overhead = kEthernetHeader + kIpv4Header + kUdpHeader + kBth + kIcrc + kFcs,
     .min_frame = kMinFrame,
     .gap = kPreamble + kInterpacketGap},
}};
static_assert(in_order(kLinkTypes));

constexpr const LinkFacts& facts(LinkType type) {
  return row_of(kLinkTypes, type);
}
constexpr std::string_view to_string(LinkType type) {
  return facts(type).name;
}
// The inverse of to_string; case-sensitive. Throws Error with the text and the allowed values.
inline LinkType link_type_from(std::string_view text) {
  return value_named(kLinkTypes, "link type", text);
}

}  // namespace verbscope
