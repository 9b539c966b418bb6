#include "microbench/loop/receiver.hpp"

#include <algorithm>

#include "common/error.hpp"

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
    : layout_(recv_layout(operation, ring_length(operation))),
      length_(ring_length(operation)),
      buffer_(Bytes(layout_.stride * layout_.places * queue_count(setup)), setup.huge_pages),
      mr_(setup.pd, buffer_.data(), buffer_.size(), unwatched(operation)),
      relaxed_(operation.relaxed_ordering),
      checker_(operation),
      requests_(queue_count(setup) * length_),
      segments_(requests_.size()),
      queues_(queue_count(setup)) {
  for (std::size_t i = 0; i < queues_.size(); ++i) add_queue(setup, operation, static_cast<std::uint32_t>(i));
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

void RecvQueues::add_queue(const ThreadSetup& setup, const Operation& operation, std::uint32_t index) {
  const std::uint32_t list = recv_list(operation);
  std::byte* const area = buffer_.data() + index * layout_.stride * layout_.places;
  ibv_recv_wr* const ring = requests_.data() + std::size_t{index} * length_;
  ibv_sge* const segments = segments_.data() + std::size_t{index} * length_;
  const std::uint32_t bytes = layout_.headroom + operation.payload;
  for (std::uint32_t j = 0; j < length_; ++j) {
    const std::uint32_t place = j % layout_.places;
    const std::byte* const payload = area + place * layout_.stride + layout_.payload_offset;
    segments[j] = {reinterpret_cast<std::uint64_t>(payload) - layout_.headroom, bytes, mr_.lkey()};
    ring[j].wr_id = recv_id(index, place);
    ring[j].next = (j + 1) % list == 0 ? nullptr : &ring[j + 1];
    ring[j].sg_list = bytes > 0 ? &segments[j] : nullptr;
    ring[j].num_sge = bytes > 0 ? 1 : 0;
  }
  RecvLane& queue = queues_[index];
  queue = {.qp = setup.lanes[index].qp,
           .srq = setup.srq,
           .ring = ring,
           .next = 0,
           .length = length_,
           .list = list,
           .consumed = 0,
           .payloads = area + layout_.payload_offset,
           .stride = layout_.stride,
           .received = 0,
           .chain = nullptr};
  for (std::uint32_t posted = 0; posted < length_; posted += list) {
    queue.chain = ring + posted;
    check_errno(fmt::format("post {} RECVs", list), setup.srq != nullptr ? post_chain(queue) : post_next_recvs(queue));
  }
  queue.chain = nullptr;
}

RecvLayout recv_layout(const Operation& op, std::uint32_t ring) {
  RecvLayout layout;
  const std::uint32_t grh_room = facts(op.transport).grh_room;
  if (grh_room > 0) {
    layout.headroom = grh_room;
    layout.payload_offset = kGrhRoom;
    layout.stride = round_up(kGrhRoom + op.payload, kSlotAlignment);
  } else {
    layout.stride = payload_stride(op.payload);
  }
  const auto fitting = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPlacesPool / layout.stride, ring));
  layout.places = op.validate || op.shared_recv_queue ? ring : std::max(1u, fitting);
  return layout;
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
