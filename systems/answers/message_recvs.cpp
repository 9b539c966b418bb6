#include "systems/answers/message_recvs.hpp"

#include "common/error.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kBeforeGrh = kCacheLine.value - kGrh.value;

}  // namespace

std::uint32_t in_recv_lists(std::uint32_t depth) {
  if (depth < kMessageRecvList) fail("--rx_depth {}: RECVs are posted {} at a time", depth, kMessageRecvList);
  return depth / kMessageRecvList * kMessageRecvList;
}

MessageRecvs::MessageRecvs(const ThreadSetup& setup, std::uint64_t message_bytes)
    : length_(in_recv_lists(setup.operation.rx_depth)),
      stride_(kCacheLine.value + round_up(message_bytes, kCacheLine.value)),
      buffer_(Bytes(setup.lanes.size() * length_ * stride_), setup.huge_pages),
      mr_(setup.pd, buffer_.data(), buffer_.size()),
      segments_(setup.lanes.size() * length_),
      requests_(segments_.size()) {}

std::vector<RecvLane> MessageRecvs::post(std::span<const AnswerQueue> queues) {
  std::vector<RecvLane> lanes;
  for (const AnswerQueue& queue : queues) {
    lanes.push_back(post(queue.lane.qp, static_cast<std::uint32_t>(lanes.size())));
  }
  return lanes;
}

RecvLane MessageRecvs::post(ibv_qp* qp, std::uint32_t index) {
  const std::size_t begin = std::size_t{index} * length_;
  for (std::uint32_t j = 0; j < length_; ++j) {
    segments_[begin + j] = {reinterpret_cast<std::uint64_t>(buffer_.data() + (begin + j) * stride_ + kBeforeGrh),
                            static_cast<std::uint32_t>(stride_ - kBeforeGrh), mr_.lkey()};
    requests_[begin + j] = {
        .wr_id = recv_id(index, j), .next = nullptr, .sg_list = &segments_[begin + j], .num_sge = 1};
    if ((j + 1) % kMessageRecvList != 0) requests_[begin + j].next = &requests_[begin + j + 1];
  }
  RecvLane lane{.qp = qp,
                .ring = &requests_[begin],
                .length = length_,
                .list = kMessageRecvList,
                .payloads = buffer_.data() + begin * stride_ + kBeforeGrh,
                .stride = stride_};
  for (std::uint32_t j = 0; j < length_; j += kMessageRecvList) check_errno("post RECVs", post_next_recvs(lane));
  return lane;
}

}  // namespace verbscope
