#include "microbench/loop/datagrams.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/choice.hpp"
#include "microbench/loop/idle_wait.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/send_queue.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope {
namespace {

class DatagramExchange final : public WorkloadOn<DatagramExchange> {
 public:
  explicit DatagramExchange(const ThreadSetup& setup)
      : recvs_(setup, setup.operation),
        buffer_(Bytes(payload_stride(setup.operation.payload)), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        segment_{reinterpret_cast<std::uint64_t>(buffer_.data()), setup.operation.payload, mr_.lkey()},
        cq_(setup.cq),
        channel_(setup.channel),
        goal_(setup.goal),
        turn_(setup.lanes.empty() ? 1 : setup.lanes.front().peers.size(), true,
              (setup.operation.seed << 20 | setup.node << 8 | setup.thread) * 2 + (setup.side == Side::client ? 1 : 0),
              0) {
    const Operation& op = setup.operation;
    fill_payload(op.seed, 0, {buffer_.data(), op.payload});
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) {
      const Lane& lane = setup.lanes[i];
      queues_.push_back(
          {.qp = lane.qp, .builder = lane.builder, .index = i, .depth = op.tx_depth, .signal_every = op.signal_every});
      ibv_send_wr& wr = requests_.emplace_back();
      wr.wr_id = send_id(i);
      wr.opcode = request_opcode(Verb::send, false);
      wr.sg_list = &segment_;
      wr.num_sge = op.payload > 0 ? 1 : 0;
      if (op.inlined) wr.send_flags = IBV_SEND_INLINE;
      for (const LanePeer& peer : lane.peers) peers_.push_back(peer.qp.address());
    }
    each_ = setup.lanes.empty() ? 0 : setup.lanes.front().peers.size();
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    MeasuredInterval interval(tally, goal_);
    IdleWait wait(cq_, channel_, tally);
    std::uint64_t done = 0;
    for (;;) {
      if (!interval.over() && !send(tally.end)) return;
      const int count = reap(cq_, queues_, tally.end, [&](const ibv_wc& wc) {
        return take_message<false, false>(recvs_.state(), wc, tally.end);
      });
      if (count < 0) return;
      const std::uint64_t before = std::exchange(done, sent());
      if (done != before || interval.due(control.phase.load(std::memory_order_relaxed), done)) {
        tally.done_ops.store(done, std::memory_order_relaxed);
        interval.see(node, control.phase.load(std::memory_order_relaxed), done);
      }
      if (interval.over() && std::ranges::all_of(queues_, [](const SendQueue& queue) { return queue.due == 0; }))
        return;
      if (count == 0 && !wait.idle_unless_quit(node, control)) return;
    }
  }

  bool active() const override { return true; }
  std::string memory() const override { return buffer_.describe(); }

 private:
  // One on each QP that has room.
  bool send(RunEnd& end) {
    for (std::uint32_t i = 0; i < queues_.size(); ++i) {
      if (queues_[i].room == 0) continue;
      requests_[i].wr.ud = peers_[i * each_ + turn_.next()];
      if (!post_one(queues_[i], requests_[i], end)) return false;
    }
    return true;
  }

  // Datagrams that are known to have left.
  std::uint64_t sent() const {
    std::uint64_t sum = 0;
    for (const SendQueue& queue : queues_) sum += queue.completed();
    return sum;
  }

  RecvQueues recvs_;
  Buffer buffer_;
  Mr mr_;
  ibv_sge segment_;
  std::vector<SendQueue> queues_;
  std::vector<ibv_send_wr> requests_;
  std::vector<UdAddress> peers_;  // [lane][peer]
  std::size_t each_;
  ibv_cq* cq_;
  ibv_comp_channel* channel_;
  std::uint64_t goal_;
  Choice turn_;
};

}  // namespace

QueueNeeds datagram_needs_both_ways(const Operation& op) {
  QueueNeeds needs = receiver_needs(op);
  needs.send_depth = op.tx_depth;
  needs.inline_bytes = op.inline_limit;
  needs.completions += op.tx_depth;
  return needs;
}

std::unique_ptr<Workload> make_datagram_exchange(const ThreadSetup& setup) {
  return std::make_unique<DatagramExchange>(setup);
}

}  // namespace verbscope
