#include "microbench/loop/recv_ring.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "microbench/loop/payload.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

RecvShape datagram_recvs(std::uint32_t count, std::uint64_t bytes, std::uint32_t list) {
  return {.count = count,
          .list = list,
          .bytes = bytes,
          .stride = kCacheLine.value + round_up(bytes, kCacheLine.value),
          .offset = kCacheLine.value,
          .headroom = static_cast<std::uint32_t>(kGrh.value)};
}

std::uint32_t recvs_for(const Operation& op, std::uint64_t at_once) {
  if (at_once > op.rx_depth) {
    fail("--rx_depth {}: a receive queue needs a RECV for each of the {} requests that its peers may have outstanding",
         op.rx_depth, at_once);
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(op.rx_depth, at_once + kSpareRecvs));
}

RecvShape end_aligned_recvs(const Operation& op, std::uint32_t payload, std::uint64_t at_once, bool datagram) {
  const std::uint64_t stride = round_up(kGrh.value + payload, kSlotAlignment);
  return {.count = recvs_for(op, at_once),
          .bytes = payload,
          .stride = stride,
          .offset = stride - payload,
          .headroom = datagram ? static_cast<std::uint32_t>(kGrh.value) : 0};
}

RecvRings::RecvRings(const ThreadSetup& setup, std::size_t queues, const RecvShape& shape, std::uint32_t first)
    : shape_(shape),
      first_(first),
      buffer_(setup.huge_pages ? Buffer(Bytes(queues * places() * shape.stride))
                               : Buffer(Bytes(queues * places() * shape.stride), PageSize::on_demand)),
      mr_(setup.pd, buffer_.data(), buffer_.size(), shape.access),
      segments_(queues * shape.count),
      requests_(segments_.size()) {}

RecvLane RecvRings::ring(ibv_qp* qp, std::uint32_t index) {
  const std::size_t queue = index - first_;
  std::byte* const messages = buffer_.data() + queue * places() * shape_.stride + shape_.offset;
  ibv_recv_wr* const requests = requests_.data() + queue * shape_.count;
  ibv_sge* const segments = segments_.data() + queue * shape_.count;
  const auto bytes = static_cast<std::uint32_t>(shape_.headroom + shape_.bytes);
  for (std::uint32_t j = 0; j < shape_.count; ++j) {
    const std::uint32_t place = j % places();
    segments[j] = {reinterpret_cast<std::uint64_t>(messages + place * shape_.stride) - shape_.headroom, bytes,
                   mr_.lkey()};
    requests[j] = {.wr_id = recv_id(index, place),
                   .next = (j + 1) % shape_.list == 0 ? nullptr : &requests[j + 1],
                   .sg_list = bytes > 0 ? &segments[j] : nullptr,
                   .num_sge = bytes > 0 ? 1 : 0};
  }
  return {.qp = qp,
          .ring = requests,
          .length = shape_.count,
          .list = shape_.list,
          .payloads = messages,
          .stride = shape_.stride};
}

RecvLane RecvRings::post(ibv_qp* qp, std::uint32_t index, ibv_srq* srq) {
  RecvLane lane = ring(qp, index);
  lane.srq = srq;
  for (std::uint32_t posted = 0; posted < shape_.count; posted += shape_.list) {
    lane.chain = lane.ring + posted;
    check_errno(fmt::format("post {} RECVs", shape_.list), srq != nullptr ? post_chain(lane) : post_next_recvs(lane));
  }
  lane.chain = nullptr;
  return lane;
}

}  // namespace verbscope
