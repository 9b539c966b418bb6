#include "microbench/send_ring.hpp"

#include <algorithm>
#include <numeric>

#include "microbench/payload.hpp"

namespace verbscope {

RingShape ring_shape(const Operation& op, std::uint32_t partners) {
  const std::uint32_t base = std::lcm(op.post_list, op.signal_every);
  const std::uint32_t even = base / std::gcd(base, partners) * partners;
  return {even <= kLongestRing ? even : base, op.post_list, op.signal_every};
}

SendRing::SendRing(const Operation& op, const RingShape& shape, const PayloadArea& area,
                   const std::vector<Destination>& destinations, std::uint32_t queue)
    : segments_(shape.length), requests_(shape.length) {
  for (std::uint32_t j = 0; j < shape.length; ++j) {
    ibv_send_wr& wr = requests_[j];
    wr = ibv_send_wr{};
    wr.wr_id = queue;
    wr.next = (j + 1) % shape.post_list == 0 ? nullptr : &requests_[j + 1];
    if ((j + 1) % shape.signal_every == 0) wr.send_flags |= IBV_SEND_SIGNALED;
    if (op.inlined) wr.send_flags |= IBV_SEND_INLINE;
    const std::uint32_t slot = j % area.slots;
    if (op.payload > 0) {
      segments_[j] = {area.address + slot * area.stride, op.payload, area.lkey};
      wr.sg_list = &segments_[j];
      wr.num_sge = 1;
    }
    wr.opcode = op.header_only ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    if (op.header_only) wr.imm_data = immediate_of(slot);
    if (!destinations.empty()) {
      const Destination& to = destinations[j % destinations.size()];
      wr.wr.ud.ah = to.ah;
      wr.wr.ud.remote_qpn = to.qpn;
      wr.wr.ud.remote_qkey = to.qkey;
    }
  }
}

std::uint64_t posted_to(std::uint64_t posted, std::uint32_t ring_length, std::uint32_t partners, std::uint32_t index) {
  const auto share = [&](std::uint64_t requests) { return (requests + partners - 1 - index) / partners; };
  return posted / ring_length * share(ring_length) + share(posted % ring_length);
}

}  // namespace verbscope
