// Link types of a port, and the bytes that each type adds around a packet's transport headers and payload: one row of
// facts per type.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/enum_table.hpp"
#include "common/units.hpp"
#include "wire/packet.hpp"

namespace verbscope {

enum class LinkType : std::uint8_t { infiniband, roce_v2 };

struct LinkFacts {
  LinkType value;
  std::string_view name;  // in profiles and records
  bool ethernet;
  Bytes around;       // per packet: headers up to and including the BTH, and CRCs after the payload
  Bytes least_frame;  // shorter packets are padded to this; 0: no padding
  Bytes between;      // time for which the port is in use between packets, in bytes
};

inline constexpr EnumTable<LinkType, LinkFacts> kLinkTypes{{
    {.value = LinkType::infiniband,
     .name = "infiniband",
     .ethernet = false,
     .around = kLrh + kBth + kIcrc + kVcrc,
     .least_frame = Bytes(0),
     .between = Bytes(0)},
    {.value = LinkType::roce_v2,
     .name = "roce_v2",
     .ethernet = true,
     .around = kEthernetHeader + kIpv4Header + kUdpHeader + kBth + kIcrc + kFcs,
     .least_frame = kLeastFrame,
     .between = kPreamble + kInterpacketGap},
}};
static_assert(in_order(kLinkTypes));

constexpr const LinkFacts& facts(LinkType type) {
  return row_of(kLinkTypes, type);
}
constexpr std::string_view to_string(LinkType type) {
  return facts(type).name;
}
// The inverse of to_string; case-sensitive. Throws Error with the text and the allowed values.
LinkType link_type_from(std::string_view text);

}  // namespace verbscope
