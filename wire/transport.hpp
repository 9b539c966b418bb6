// The transports (services of a QP) and their properties: one row of facts per transport. Code that depends on such a
// property reads it here instead of comparing transports.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/enum_table.hpp"
#include "common/units.hpp"
#include "wire/nic_family.hpp"
#include "wire/packet.hpp"
#include "wire/verb.hpp"

namespace verbscope {

enum class Transport : std::uint8_t { rc, uc, ud, xrc };

// InfiniBand Architecture Specification 1.3, volume 1, chapter 9.
struct alignas(64) TransportFacts {  // the size is a power of two: the simulator finds rows for each packet
  Transport value;
  std::string_view name;  // in options and records
  // True if every request is acknowledged or answered, and else sent again: a work request completes when it is
  // acknowledged. False: it completes when it is sent, and losses are final.
  bool reliable;
  // True if the QP has one peer, which it is given on its transition to RTR. False: each work request names its target
  // by an address handle, and a Q_Key authorises each packet.
  bool connected;
  bool one_packet;         // a message is a single packet, at most as long as the MTU
  bool receives_in_cqe;    // received payload can be in the CQE
  VerbSet verbs;           // section 9.4, table of operations by transport
  Bytes packet_header;     // extension header of every request packet
  Bytes address_segment;   // bytes of a WQE that address the target of a request
  std::uint32_t grh_room;  // bytes at the start of every RECV buffer, for the GRH of a packet that has one
  bool names_queue;        // each request names the target's shared receive queue: annex A14
};

inline constexpr EnumTable<Transport, TransportFacts> kTransports{{
    {.value = Transport::rc,
     .name = "RC",
     .reliable = true,
     .connected = true,
     .one_packet = false,
     .receives_in_cqe = true,
     .verbs = {Verb::send, Verb::write, Verb::read, Verb::compare_swap, Verb::fetch_add, Verb::recv},
     .packet_header = Bytes(0),
     .address_segment = Bytes(0),
     .grh_room = 0,
     .names_queue = false},
    {.value = Transport::uc,
     .name = "UC",
     .reliable = false,
     .connected = true,
     .one_packet = false,
     .receives_in_cqe = true,
     .verbs = {Verb::send, Verb::write, Verb::recv},
     .packet_header = Bytes(0),
     .address_segment = Bytes(0),
     .grh_room = 0,
     .names_queue = false},
    {.value = Transport::ud,
     .name = "UD",
     .reliable = false,
     .connected = false,
     .one_packet = true,
     .receives_in_cqe = false,
     .verbs = {Verb::send, Verb::recv},
     .packet_header = kDeth,
     .address_segment = kDatagramSegment,
     .grh_room = static_cast<std::uint32_t>(kGrh.value),
     .names_queue = false},
    {.value = Transport::xrc,
     .name = "XRC",
     .reliable = true,
     .connected = true,
     .one_packet = false,
     .receives_in_cqe = false,
     .verbs = {Verb::send, Verb::write, Verb::read, Verb::compare_swap, Verb::fetch_add, Verb::recv},
     .packet_header = kXrcEth,
     .address_segment = Bytes(0),
     .grh_room = 0,
     .names_queue = true},
}};
static_assert(in_order(kTransports));

constexpr const TransportFacts& facts(Transport transport) {
  return row_of(kTransports, transport);
}
constexpr std::string_view to_string(Transport transport) {
  return facts(transport).name;
}

// The transports of benchmarks, in options and records: none has queues that its peers name.
inline constexpr std::array kBenchmarkTransports = {facts(Transport::rc), facts(Transport::uc), facts(Transport::ud)};

// The benchmark transport with this name; case-sensitive. Throws Error with the text and the allowed values.
inline Transport transport_from(std::string_view text) {
  return value_named(kBenchmarkTransports, "transport", text);
}
}  // namespace verbscope
