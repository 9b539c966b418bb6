#include "microbench/loop/sender.hpp"

#include <algorithm>
#include <deque>
#include <optional>

#include "common/error.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/send_loop.hpp"
#include "microbench/loop/send_ring.hpp"

namespace verbscope {

namespace {

bool reads(const Operation& op) {
  return op.verb == Verb::read;
}

// READs that are validated have bytes each; otherwise the requests of a ring share a few slots.
std::uint64_t slots_of(const Operation& op, std::size_t lanes) {
  if (reads(op) && op.validate) return std::uint64_t{ring_shape(op, 1).length} * lanes;
  return payload_slots(op.payload);
}

class Sender final : public WorkloadOn<Sender> {
 public:
  Sender(const ThreadSetup& setup, const SenderOptions& options)
      : lanes_(setup.lanes),
        messages_(setup.operation.verb == Verb::send),
        delivered_(messages_ || setup.operation.immediate),
        buffer_(Bytes(payload_stride(setup.operation.payload) * slots_of(setup.operation, setup.lanes.size())),
                setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size(), unwatched(setup.operation)),
        relaxed_(setup.operation.relaxed_ordering),
        checker_(setup.operation),
        queues_(setup.lanes.size()) {
    const Operation& op = setup.operation;
    fill_slots(op);
    for (std::size_t i = 0; i < lanes_.size(); ++i) add_queue(setup, options, static_cast<std::uint32_t>(i));
    state_.cq = setup.cq;
    state_.queues = queues_;
    state_.ready.resize(queues_.size());
    for (SendQueue& queue : queues_) state_.ready[state_.ready_tail++] = &queue;
    state_.post_list = op.post_list;
    state_.signal_every = op.signal_every;
    state_.goal = setup.goal;
    if (queues_.size() > 1) windows_.resize(queues_.size());
    state_.windows = windows_;
    state_.channel = setup.channel;
    state_.checker = &checker_;
    if (options.random_turns) state_.random_turn = op.seed * 2 + 1;
    builder_ = op.builder;
    validated_ = reads(op) && op.validate;
    stays_ = op.both_ways && !options.receives;
    if (!options.receives) return;
    state_.arrivals = &arrivals_.emplace(setup, op).state();
    state_.check_arrivals = op.validate;
  }

  // Where both sides post, a thread that is done stays until everybody is.
  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    send(node, control, tally);
    if (stays_) stay_drained(node, control, tally);
  }

  template <Node N>
  void send(N& node, const RunControl& control, ThreadTally& tally) {
    if (arrivals_) {
      builder_ ? send_loop<SendTraits{.builder = true, .receives = true}>(node, state_, control, tally)
               : send_loop<SendTraits{.receives = true}>(node, state_, control, tally);
      return;
    }
    constexpr SendTraits kRead{.validated = true}, kBuilt{.builder = true},
        kBuiltRead{.builder = true, .validated = true};
    if (validated_) {
      builder_ ? send_loop<kBuiltRead>(node, state_, control, tally) : send_loop<kRead>(node, state_, control, tally);
      return;
    }
    if (builder_) return send_loop<kBuilt>(node, state_, control, tally);
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
    if (!delivered_) return sent;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const auto partners = static_cast<std::uint32_t>(lanes_[i].peers.size());
      for (std::uint32_t p = 0; p < partners; ++p) {
        if (lanes_[i].peers[p].node == node)
          sent += posted_to(queues_[i].posted(), static_cast<std::uint32_t>(queues_[i].ring.size()), partners, p);
      }
    }
    return sent;
  }

  std::uint64_t round() const override {
    return queues_.size() > 1 && state_.signal_every > 1 ? queues_.size() * state_.signal_every : 0;
  }

  std::uint64_t received() const override { return arrivals_ ? arrivals_->received() : 0; }
  std::uint64_t checked() const override { return state_.checked + received(); }
  std::uint64_t wrong() const override { return state_.wrong + (arrivals_ ? arrivals_->wrong() : 0); }
  bool relaxed() const override { return relaxed_; }
  std::string memory() const override { return buffer_.describe(); }

 private:
  void fill_slots(const Operation& op) {
    if (reads(op)) return;
    const std::uint64_t stride = payload_stride(op.payload);
    for (std::uint32_t slot = 0; slot < payload_slots(op.payload); ++slot) {
      fill_payload(op.seed, slot, buffer_.bytes().subspan(slot * stride, op.payload));
    }
  }

  void add_queue(const ThreadSetup& setup, const SenderOptions& options, std::uint32_t index) {
    const Operation& op = setup.operation;
    const Lane& lane = lanes_[index];
    std::vector<UdAddress> destinations;
    for (const LanePeer& peer : lane.peers) {
      if (peer.qp.ah != nullptr) destinations.push_back(peer.qp.address());
    }
    const RingShape shape = ring_shape(op, static_cast<std::uint32_t>(lane.peers.size()));
    const std::uint64_t stride = payload_stride(op.payload);
    PayloadArea area{reinterpret_cast<std::uint64_t>(buffer_.data()), stride, payload_slots(op.payload), mr_.lkey()};
    if (reads(op) && op.validate) {
      area.address += index * stride * shape.length;
      area.slots = shape.length;
    }
    const RemoteRegion& remote = lane.peers.front().region;
    SendRing& ring = rings_.emplace_back(op, shape, area, destinations, index, messages_ ? RemoteRegion{} : remote);
    SendQueue& queue = queues_[index] = {.qp = lane.qp,
                                         .builder = lane.builder,
                                         .index = index,
                                         .depth = op.outstanding(),
                                         .signal_every = op.signal_every,
                                         .ring = {ring.requests(), shape.length}};
    if (messages_) return;
    const std::uint64_t seed = op.seed + setup.node * kNodeStep + lane.index * (remote.bytes / stride / lane.count + 1);
    RemoteWalk& walk = walks_.emplace_back(remote_walk(remote, op.payload, options, seed));
    walk.point(ring.requests(), shape.length);
    if (walk.places() > 1) queue.walk = &walk;
  }

  // Far apart, so that no two QPs of different nodes walk alike.
  static constexpr std::uint64_t kNodeStep = std::uint64_t{1} << 40;

  std::vector<Lane> lanes_;
  bool messages_;   // it posts SENDs
  bool delivered_;  // a receiver counts what it posts
  Buffer buffer_;
  Mr mr_;
  bool relaxed_;
  PayloadChecker checker_;
  std::deque<SendRing> rings_;
  std::deque<RemoteWalk> walks_;
  std::vector<SendQueue> queues_;
  std::vector<IntervalBounds> windows_;  // of each queue, or none
  SendState state_;
  std::optional<RecvQueues> arrivals_;
  bool builder_ = false;
  bool validated_ = false;
  bool stays_ = false;
};

}  // namespace

QueueNeeds sender_needs(const Operation& op) {
  QueueNeeds needs;
  needs.send_depth = op.tx_depth;
  needs.send_sge = op.payload > 0 ? 1 : 0;
  needs.inline_bytes = op.inline_limit;
  needs.completions = op.outstanding() / op.signal_every + 1;
  return needs;
}

QueueNeeds both_needs(const Operation& op) {
  const QueueNeeds recv = receiver_needs(op);
  QueueNeeds needs = sender_needs(op);
  needs.recv_depth = recv.recv_depth;
  needs.recv_sge = recv.recv_sge;
  needs.completions += recv.completions;
  return needs;
}

RemoteWalk remote_walk(const RemoteRegion& remote, std::uint32_t payload, const SenderOptions& options,
                       std::uint64_t seed) {
  const bool apart = options.alignment == 0;
  const std::uint64_t place = apart ? payload_stride(payload) : std::max<std::uint64_t>(payload, 1);
  if (remote.bytes < place) fail("the peer's region has {} bytes, one place needs {}", remote.bytes, place);
  return {remote, apart ? place : options.alignment, options.addresses, seed, place};
}

std::unique_ptr<Workload> make_sender(const ThreadSetup& setup, const SenderOptions& options) {
  return std::make_unique<Sender>(setup, options);
}

}  // namespace verbscope
