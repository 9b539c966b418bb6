#include "microbench/echo/places.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "microbench/loop/payload.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kSpareRecvs = 32;  // RECVs of each QP: twice what an adapter is taken to fetch at once

// Bytes of a RECV's place: the message may have a GRH before it, and ends where the place ends.
std::uint64_t recv_stride(std::uint32_t payload) {
  return round_up(kGrh.value + payload, kSlotAlignment);
}

}  // namespace

std::uint64_t echo_stride(std::uint32_t payload) {
  return round_up(payload, kSlotAlignment);
}

std::uint32_t echo_recvs(const Operation& op, std::uint64_t under_way) {
  if (under_way > op.rx_depth) {
    fail("--rx_depth {} is too short for the {} requests that all peers of a QP may have outstanding", op.rx_depth,
         under_way);
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(op.rx_depth, under_way + kSpareRecvs));
}

RecvShape echo_recv_shape(const Operation& op, std::uint32_t payload, std::uint64_t under_way, bool datagram) {
  const std::uint64_t stride = recv_stride(payload);
  return {.count = echo_recvs(op, under_way),
          .bytes = payload,
          .stride = stride,
          .offset = stride - payload,
          .headroom = datagram ? static_cast<std::uint32_t>(kGrh.value) : 0};
}

EchoSlots slots_of(const RecvLane& ring, std::uint32_t payload) {
  return {ring.payloads + payload - ring.stride, ring.stride};
}

EchoSends::EchoSends(const ThreadSetup& setup, std::size_t count)
    : op_(setup.operation), segments_(count), requests_(count) {}

std::span<ibv_send_wr> EchoSends::build(std::size_t begin, std::size_t count, std::uint32_t queue,
                                        const EchoSlots& from, std::uint32_t lkey, const LanePeer& peer, bool written) {
  for (std::size_t j = 0; j < count; ++j) {
    ibv_send_wr& wr = requests_[begin + j];
    segments_[begin + j] = {reinterpret_cast<std::uint64_t>(from.end_of(j)) - op_.payload, op_.payload, lkey};
    wr.wr_id = send_id(queue);
    wr.sg_list = &segments_[begin + j];
    wr.num_sge = 1;
    wr.opcode = written ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
    if (op_.inlined) wr.send_flags = IBV_SEND_INLINE;
    if (written) {
      const std::uint64_t slot_end = peer.region.address + peer.slice().offset + (j + 1) * echo_stride(op_.payload);
      wr.wr.rdma = {slot_end - op_.payload, peer.region.rkey};
    }
  }
  return {&requests_[begin], count};
}

}  // namespace verbscope
