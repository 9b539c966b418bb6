#include "microbench/loop/receiver.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "microbench/bench/workload.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kPlacesPool = std::uint64_t{4} << 20;  // bytes of a QP's buffers, unless each must be its own
constexpr std::uint64_t kGrhRoom = 64;  // the GRH's 40 bytes, and room to begin the payload on a line

std::uint32_t ring_length(const Operation& op) {
  return op.rx_depth / recv_list(op) * recv_list(op);
}

std::size_t queue_count(const ThreadSetup& setup) {
  return setup.srq != nullptr ? 1 : setup.lanes.size();
}

class Receiver final : public WorkloadOn<Receiver> {
 public:
  Receiver(const ThreadSetup& setup, const Operation& operation) : queues_(setup, operation) {
    index_ = (operation.validate ? 1u : 0u) | (setup.srq != nullptr ? 2u : 0u);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    using Loop = void (*)(N&, RecvState&, const RunControl&, ThreadTally&);
    static constexpr Loop kLoops[] = {recv_loop<false, false, N>, recv_loop<true, false, N>, recv_loop<false, true, N>,
                                      recv_loop<true, true, N>};
    kLoops[index_](node, queues_.state(), control, tally);
  }

  bool active() const override { return false; }
  std::uint64_t received() const override { return queues_.received(); }
  std::uint64_t wrong() const override { return queues_.wrong(); }
  std::string memory() const override { return queues_.memory(); }
  bool relaxed() const override { return queues_.relaxed(); }

 private:
  RecvQueues queues_;
  std::size_t index_ = 0;  // which of the loops step() runs
};

}  // namespace

RecvQueues::RecvQueues(const ThreadSetup& setup, const Operation& operation)
    : rings_(setup, queue_count(setup), recv_shape(operation, ring_length(operation))),
      relaxed_(operation.relaxed_ordering),
      checker_(operation) {
  for (std::uint32_t i = 0; i < queue_count(setup); ++i) {
    queues_.push_back(rings_.post(setup.lanes[i].qp, i, setup.srq));
  }
  state_.cq = setup.cq;
  state_.queues = queues_;
  state_.checker = &checker_;
  state_.goal = setup.goal;
  state_.close_when_idle = setup.side == Side::client;
  state_.channel = setup.channel;
}

std::uint64_t RecvQueues::received() const {
  std::uint64_t sum = 0;
  for (const RecvLane& queue : queues_) sum += queue.received;
  return sum;
}

RecvShape recv_shape(const Operation& op, std::uint32_t ring) {
  RecvShape shape{.count = ring,
                  .list = recv_list(op),
                  .bytes = op.payload,
                  .stride = payload_stride(op.payload),
                  .access = unwatched(op)};
  if (const std::uint32_t grh_room = facts(op.transport).grh_room; grh_room > 0) {
    shape.headroom = grh_room;
    shape.offset = kGrhRoom;
    shape.stride = round_up(kGrhRoom + op.payload, kSlotAlignment);
  }
  const auto fitting = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPlacesPool / shape.stride, ring));
  shape.places = op.validate || op.shared_recv_queue ? ring : std::max(1u, fitting);
  return shape;
}

QueueNeeds receiver_needs(const Operation& op) {
  QueueNeeds needs;
  needs.recv_depth = op.rx_depth;
  needs.recv_sge = op.payload + facts(op.transport).grh_room > 0 ? 1 : 0;
  needs.completions = op.rx_depth;
  return needs;
}

std::unique_ptr<Workload> make_receiver(const ThreadSetup& setup) {
  return std::make_unique<Receiver>(setup, setup.operation);
}

Operation recv_of_immediate(const Operation& op) {
  Operation recv = op;
  recv.payload = 0;
  recv.validate = false;
  return recv;
}

std::unique_ptr<Workload> make_immediate_receiver(const ThreadSetup& setup) {
  return std::make_unique<Receiver>(setup, recv_of_immediate(setup.operation));
}

// Lists of whole groups are fetched whole. Others must leave a group at hand while the next one fills: beside what the
// program gathers for a list, what one group has is in use.
VerbShape listed_recv_shape(const ClusterWire& cluster, const Operation& operation, int ports) {
  const std::uint32_t list = recv_list(operation);
  const std::uint64_t group = recv_group(cluster, verb_shape(operation, ports));
  if (list % group != 0) check_recv_groups(cluster, operation, ring_length(operation), list - 1 + group);
  VerbShape shape = verb_shape(operation, ports);
  shape.post_list = static_cast<int>(list);
  return shape;
}

Prediction predict_listed_receiver(const ClusterWire& cluster, const Operation& operation, int ports) {
  return predict_receiver(cluster, listed_recv_shape(cluster, operation, ports));
}

}  // namespace verbscope
