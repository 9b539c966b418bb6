// Work queue elements: the segments of a WQE for each verb and transport, and inline receive. The size of a whole WQE
// is computed independently in closed form (pcie_model) and segment by segment (nic_sim).
#pragma once

#include <algorithm>
#include <bit>

#include "common/units.hpp"
#include "wire/nic_family.hpp"
#include "wire/transport.hpp"
#include "wire/verb.hpp"

namespace verbscope {

// Sizes of the segments before the data, in this order; 0: no such segment. The data follow, inline or as one data
// segment per SGE; an empty payload has neither.
struct WqeLayout {
  Bytes control;
  Bytes address;         // target of a datagram
  Bytes remote_address;  // address in the responder's memory
  Bytes atomic;          // the operands
};

// Both families use the same layout. Precondition: the transport has the verb.
constexpr WqeLayout wqe_layout(Transport transport, Verb verb) {
  const VerbFacts& of_verb = facts(verb);
  const Bytes none(0);
  return {.control = of_verb.requests ? kControlSegment : none,
          .address = of_verb.requests ? facts(transport).address_segment : none,
          .remote_address = of_verb.one_sided ? kRemoteAddressSegment : none,
          .atomic = of_verb.atomic ? kAtomicSegment : none};
}

struct InlineReceiveRoom {
  InlineReceive place = InlineReceive::nowhere;
  Bytes max_payload{};
};

// mlx5: a SEND on RC and UC, and at the requester the result of a READ or an atomic. 32 bytes in a CQE, or 64 in one of
// 128 bytes (rdma-core 44 providers/mlx5/cq.c: MLX5_INLINE_SCATTER_32, MLX5_INLINE_SCATTER_64). mlx4: the payload of a
// SEND on any transport; the limit of 512 bytes is assumed.
constexpr InlineReceiveRoom inline_receive_room(NicFamily family, Transport transport, Verb verb, Bytes cqe) {
  constexpr Bytes kInRecv{512};
  const InlineReceive place = facts(family).inline_receive;
  const bool in_cqe = place == InlineReceive::in_cqe && facts(transport).receives_in_cqe;
  if (in_cqe) return {place, Bytes(cqe >= Bytes(128) ? 64 : 32)};
  if (place == InlineReceive::in_recv && verb == Verb::send) return {place, kInRecv};
  return {};
}

// Stride of a receive queue if each RECV (of `recv` bytes) has room for `payload` and for the transport's GRH room
// before it: a power of two.
constexpr Bytes recv_stride(Bytes recv, Transport transport, Bytes payload) {
  return Bytes(std::bit_ceil(std::max(recv.value, payload.value == 0 ? 0 : facts(transport).grh_room + payload.value)));
}

}  // namespace verbscope
