#include "systems/rpc/datagram_transport.hpp"

#include "common/error.hpp"
#include "wire/packet.hpp"

namespace verbscope {

namespace {

const Lane& only_lane(const ThreadSetup& setup) {
  if (setup.lanes.empty()) fail("thread {} has no QP for RPCs", setup.thread);
  return setup.lanes.front();
}

}  // namespace

DatagramTransport::DatagramTransport(const ThreadSetup& setup, std::uint32_t bytes, std::uint32_t recvs,
                                     std::uint32_t alone)
    : cq_(setup.cq),
      queue_{.qp = only_lane(setup).qp,
             .builder = only_lane(setup).builder,
             .depth = setup.operation.tx_depth,
             .signal_every = setup.operation.signal_every},
      inline_bytes_(setup.operation.inline_limit),
      alone_(alone),
      places_(setup.operation.tx_depth),
      next_place_(&places_[0]),
      room_end_(queue_.depth),
      headers_(Bytes(places_.size() * kPacketHeaderBytes), setup.huge_pages),
      headers_mr_(setup.pd, headers_.data(), headers_.size()),
      recvs_(setup, 1, datagram_recvs(recvs, bytes, recv_list(setup.operation))),
      recvs_lane_(recvs_.post(queue_.qp, 0)),
      stored_(recvs) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    ibv_send_wr& wr = places_[i].wr;
    wr.wr_id = send_id(queue_.index);
    places_[i].following = &places_[i + 1];
    wr.next = &places_[i + 1].wr;
    wr.sg_list = places_[i].segments;
    wr.opcode = IBV_WR_SEND;
  }
}

}  // namespace verbscope
