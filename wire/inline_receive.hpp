// Inline receive ("scatter to CQE" on mlx5): what each family of adapters can keep of an arriving payload.
#pragma once

#include <algorithm>
#include <bit>

#include "common/units.hpp"
#include "wire/nic_family.hpp"
#include "wire/transport.hpp"
#include "wire/verb.hpp"

namespace verbscope {

struct InlineReceiveRoom {
  InlineReceive place = InlineReceive::nowhere;
  Bytes most{};  // the longest payload
};

// For messages by `verb` over a transport. mlx5: a SEND on RC and UC, and at the requester the result of a READ or an
// atomic; 32 bytes in the CQE, 64 in one of 128 bytes (rdma-core 44 providers/mlx5/cq.c: MLX5_INLINE_SCATTER_32,
// MLX5_INLINE_SCATTER_64). mlx4: what a SEND brings, over any transport; that it takes 512 bytes is assumed.
constexpr InlineReceiveRoom inline_receive_room(NicFamily family, Transport transport, Verb verb, Bytes cqe) {
  constexpr Bytes kInRecv{512};
  const InlineReceive place = facts(family).inline_receive;
  const bool in_cqe = place == InlineReceive::in_cqe && facts(transport).receives_in_cqe;
  if (in_cqe) return {place, Bytes(cqe >= Bytes(128) ? 64 : 32)};
  if (place == InlineReceive::in_recv && verb == Verb::send) return {place, kInRecv};
  return {};
}

// A receive queue's stride where RECVs of `recv` bytes have room for `payload`, behind what the transport puts before
// it: a power of two.
constexpr Bytes recv_stride(Bytes recv, Transport transport, Bytes payload) {
  return Bytes(std::bit_ceil(std::max(recv.value, payload.value == 0 ? 0 : facts(transport).grh_room + payload.value)));
}

}  // namespace verbscope
