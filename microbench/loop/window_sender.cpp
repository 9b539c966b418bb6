#include "microbench/loop/window_sender.hpp"

#include <deque>
#include <vector>

#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/window_loop.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope {

namespace {

// A READ has bytes of its own; WRITEs share a few slots.
std::uint64_t landing_places(const Operation& op, std::uint64_t ring) {
  return op.verb == Verb::read ? ring : payload_slots(op.payload);
}

std::uint64_t ring_of(const Operation& op, const WindowOptions& options) {
  return options.window > 0 ? options.window : op.post_list;
}

class WindowSender final : public WorkloadOn<WindowSender> {
 public:
  WindowSender(const ThreadSetup& setup, const WindowOptions& options)
      : slots_(ring_of(setup.operation, options)),
        segments_(slots_.size()),
        requests_(slots_.size()),
        buffer_(Bytes(payload_stride(setup.operation.payload) * landing_places(setup.operation, slots_.size())),
                setup.huge_pages),
        relaxed_(setup.operation.relaxed_ordering && options.seen_by != SeenBy::memory),
        mr_(setup.pd, buffer_.data(), buffer_.size(),
            relaxed_ ? unwatched(setup.operation) : int{IBV_ACCESS_LOCAL_WRITE}),
        checker_(setup.operation),
        stays_(setup.operation.both_ways) {
    const Operation& op = setup.operation;
    const std::uint64_t stride = payload_stride(op.payload);
    build_requests(op, stride);
    for (const Lane& lane : setup.lanes) add_queue(setup, options, lane);
    state_.queues = queues_;
    state_.requests = requests_;
    state_.slots = slots_;
    state_.bounded = options.window > 0;
    state_.whole = options.whole;
    state_.post_list = op.post_list;
    state_.signal_every = op.signal_every;
    state_.turn = Choice(queues_.size(), options.order.random_turns, seed_of(setup, 0), 0);
    state_.goal = setup.goal;
    state_.channel = setup.channel;
    state_.landing = buffer_.bytes();
    state_.stride = stride;
    state_.payload = op.payload;
    state_.shared = setup.shared;
    state_.member = setup.member;
    state_.by_memory = options.seen_by == SeenBy::memory;
    if (op.verb == Verb::read && op.validate) state_.checker = &checker_;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    WindowLoop<N>(node, state_, control, tally).run();
    if (stays_) stay_drained(node, control, tally);
  }

  bool active() const override { return true; }
  std::uint64_t round() const override {
    return !state_.bounded && queues_.size() > 1 && state_.signal_every > 1 ? queues_.size() * state_.signal_every : 0;
  }
  std::uint64_t checked() const override { return state_.checked; }
  std::uint64_t wrong() const override { return state_.wrong; }
  std::string memory() const override { return buffer_.describe(); }
  bool relaxed() const override { return relaxed_; }

 private:
  // No two QPs or threads of any node have the same.
  static std::uint64_t seed_of(const ThreadSetup& setup, std::uint64_t queue) {
    const std::uint64_t node = setup.side == Side::server ? 0 : setup.node + 1;
    return (((setup.operation.seed << 8 | node) << 12 | setup.thread) << 20) + queue;
  }

  void build_requests(const Operation& op, std::uint64_t stride) {
    const std::uint64_t own = landing_places(op, slots_.size());
    if (op.verb == Verb::write) {
      for (std::uint32_t slot = 0; slot < own; ++slot) {
        fill_payload(op.seed, slot, buffer_.bytes().subspan(slot * stride, op.payload));
      }
    }
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      ibv_send_wr& wr = requests_[i] = ibv_send_wr{};
      wr.opcode = request_opcode(op.verb, false);
      wr.next = (i + 1) % op.post_list == 0 ? nullptr : &requests_[i + 1];
      if (op.inlined) wr.send_flags |= IBV_SEND_INLINE;
      if (op.payload == 0) continue;
      segments_[i] = {reinterpret_cast<std::uint64_t>(buffer_.data()) + i % own * stride, op.payload, mr_.lkey()};
      wr.sg_list = &segments_[i];
      wr.num_sge = 1;
    }
  }

  void add_queue(const ThreadSetup& setup, const WindowOptions& options, const Lane& lane) {
    const LanePeer& peer = lane.peers.front();
    RemoteRegion remote = peer.region;
    if (options.share_of_thread) {
      const Slice share = slice_of(remote.bytes, setup.topology.threads, setup.thread);
      remote.address += share.offset;
      remote.bytes = share.bytes;
    }
    RemoteWalk& walk =
        walks_.emplace_back(remote_walk(remote, setup.operation.payload, options.order, seed_of(setup, lane.index)));
    queues_.push_back({.qp = lane.qp,
                       .builder = lane.builder,
                       .index = static_cast<std::uint32_t>(queues_.size()),
                       .depth = setup.operation.tx_depth,
                       .signal_every = setup.operation.signal_every,
                       .walk = &walk});
  }

  std::vector<WindowSlot> slots_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  Buffer buffer_;
  bool relaxed_;
  Mr mr_;
  PayloadChecker checker_;
  std::deque<RemoteWalk> walks_;
  std::vector<SendQueue> queues_;
  WindowState state_;
  bool stays_;  // where both sides post, until everybody is done
};

}  // namespace

std::unique_ptr<Workload> make_window_sender(const ThreadSetup& setup, const WindowOptions& options) {
  return std::make_unique<WindowSender>(setup, options);
}

}  // namespace verbscope
