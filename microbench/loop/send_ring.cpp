#include "microbench/loop/send_ring.hpp"

#include <numeric>

#include "microbench/loop/completions.hpp"
#include "microbench/loop/payload.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope {

RingShape ring_shape(const Operation& op, std::uint32_t partners) {
  std::uint32_t base = std::lcm(op.post_list, op.signal_every);
  if (op.verb != Verb::send) base *= (kShortestWalk + base - 1) / base;
  if (op.validate && op.verb == Verb::read) base *= (op.outstanding() + base - 1) / base;
  const std::uint32_t even = base / std::gcd(base, partners) * partners;
  return {even <= kLongestRing ? even : base, op.post_list, op.signal_every};
}

SendRing::SendRing(const Operation& op, const RingShape& shape, const PayloadArea& area,
                   const std::vector<UdAddress>& destinations, std::uint32_t queue, const RemoteRegion& remote)
    : segments_(shape.length), requests_(shape.length) {
  for (std::uint32_t j = 0; j < shape.length; ++j) {
    ibv_send_wr& wr = requests_[j];
    wr = ibv_send_wr{};
    wr.wr_id = send_id(queue);
    wr.next = (j + 1) % shape.post_list == 0 ? nullptr : &requests_[j + 1];
    if ((j + 1) % shape.signal_every == 0) wr.send_flags |= IBV_SEND_SIGNALED;
    if (op.inlined) wr.send_flags |= IBV_SEND_INLINE;
    const std::uint32_t slot = j % area.slots;
    if (op.payload > 0) {
      segments_[j] = {area.address + slot * area.stride, op.payload, area.lkey};
      wr.sg_list = &segments_[j];
      wr.num_sge = 1;
    }
    wr.opcode = request_opcode(op.verb, op.header_only || op.immediate);
    if (op.header_only || op.immediate) wr.imm_data = immediate_of(slot);
    if (remote.bytes > 0) {
      wr.wr.rdma.remote_addr = remote.address;
      wr.wr.rdma.rkey = remote.rkey;
    }
    if (!destinations.empty()) wr.wr.ud = destinations[j % destinations.size()];
  }
}

std::uint64_t posted_to(std::uint64_t posted, std::uint32_t ring_length, std::uint32_t partners, std::uint32_t index) {
  const auto share = [&](std::uint64_t requests) { return (requests + partners - 1 - index) / partners; };
  return posted / ring_length * share(ring_length) + share(posted % ring_length);
}

}  // namespace verbscope
