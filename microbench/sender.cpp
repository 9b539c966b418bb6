#include "microbench/sender.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>

#include "microbench/payload.hpp"
#include "microbench/send_loop.hpp"
#include "microbench/send_ring.hpp"
#include "verbs/memory.hpp"

namespace verbscope {

namespace {

class Sender final : public WorkloadOn<Sender> {
 public:
  explicit Sender(const ThreadSetup& setup)
      : lanes_(setup.lanes),
        buffer_(Bytes(payload_stride(setup.operation.payload) * payload_slots(setup.operation.payload)),
                setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        queues_(setup.lanes.size()),
        ready_(std::bit_ceil(setup.lanes.size())) {
    const Operation& op = setup.operation;
    const PayloadArea area = fill_slots(op);
    for (std::size_t i = 0; i < lanes_.size(); ++i) add_queue(op, area, static_cast<std::uint32_t>(i));
    state_.cq = setup.cq;
    state_.queues = queues_;
    state_.ready = ready_;
    for (SendQueue& queue : queues_) ready_[state_.ready_tail++] = &queue;
    state_.post_list = op.post_list;
    state_.signal_every = op.signal_every;
    state_.goal = setup.goal;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    const std::size_t index =
        (state_.post_list == 1 ? 4u : 0u) | (state_.signal_every == 1 ? 2u : 0u) | (queues_.size() == 1 ? 1u : 0u);
    using Loop = void (*)(N&, SendState&, const RunControl&, ThreadTally&);
    static constexpr Loop kLoops[] = {
        send_loop<SendTraits{false, false, false}, N>, send_loop<SendTraits{false, false, true}, N>,
        send_loop<SendTraits{false, true, false}, N>,  send_loop<SendTraits{false, true, true}, N>,
        send_loop<SendTraits{true, false, false}, N>,  send_loop<SendTraits{true, false, true}, N>,
        send_loop<SendTraits{true, true, false}, N>,   send_loop<SendTraits{true, true, true}, N>};
    kLoops[index](node, state_, control, tally);
  }

  bool active() const override { return true; }

  std::uint64_t sent_to(std::uint32_t node) const override {
    std::uint64_t sent = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const auto partners = static_cast<std::uint32_t>(lanes_[i].peers.size());
      for (std::uint32_t p = 0; p < partners; ++p) {
        if (lanes_[i].peers[p].node == node) sent += posted_to(queues_[i].posted(), queues_[i].length, partners, p);
      }
    }
    return sent;
  }

  std::uint64_t received() const override { return 0; }
  std::uint64_t wrong() const override { return 0; }
  std::string memory() const override { return buffer_.describe(); }

 private:
  PayloadArea fill_slots(const Operation& op) {
    const PayloadArea area{reinterpret_cast<std::uint64_t>(buffer_.data()), payload_stride(op.payload),
                           payload_slots(op.payload), mr_.lkey()};
    for (std::uint32_t slot = 0; slot < area.slots; ++slot) {
      fill_payload(op.seed, slot, buffer_.bytes().subspan(slot * area.stride, op.payload));
    }
    return area;
  }

  void add_queue(const Operation& op, const PayloadArea& area, std::uint32_t index) {
    const Lane& lane = lanes_[index];
    std::vector<Destination> destinations;
    for (const LanePeer& peer : lane.peers) {
      if (peer.ah != nullptr) destinations.push_back({peer.ah, peer.qpn, peer.qkey});
    }
    const RingShape shape = ring_shape(op, static_cast<std::uint32_t>(lane.peers.size()));
    rings_.emplace_back(op, shape, area, destinations, index);
    queues_[index] = {lane.qp, rings_.back().requests(), 0, shape.length, op.tx_depth, op.tx_depth, 0};
  }

  std::vector<Lane> lanes_;
  Buffer buffer_;
  Mr mr_;
  std::deque<SendRing> rings_;
  std::vector<SendQueue> queues_;
  std::vector<SendQueue*> ready_;
  SendState state_;
};

}  // namespace

QueueNeeds sender_needs(const Operation& op) {
  QueueNeeds needs;
  needs.send_depth = op.tx_depth;
  needs.send_sge = op.payload > 0 ? 1 : 0;
  needs.inline_bytes = op.inline_limit;
  needs.completions = op.tx_depth / op.signal_every + 1;
  return needs;
}

std::unique_ptr<Workload> make_sender(const ThreadSetup& setup) {
  return std::make_unique<Sender>(setup);
}

}  // namespace verbscope
