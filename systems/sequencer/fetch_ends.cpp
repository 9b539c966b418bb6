// The sequencer without a program at the server: clients fetch-and-add one counter.
#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "systems/sequencer/bases.hpp"

namespace verbscope {

namespace {

// Keeps atomics outstanding on one QP, which complete in order.
class FetchAsker : public RequestAsker {
 public:
  ClientState* state = nullptr;
  // Of each request in the queue's ring.
  std::span<const std::uint64_t> results;
  std::span<Asked> asked;

  std::uint64_t open() const { return state->queues[0].depth - state->queues[0].room; }

  bool ask(Picos now, RunEnd& end) {
    SendQueue& queue = state->queues[0];
    while (queue.room > 0) {
      state->receipts.ask(asked[queue.posted() % asked.size()], now);
      if (!post_next(queue, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc&, Picos now, bool measured, RunEnd&) {
    const std::size_t place = (state->queues[0].completed() - 1) % asked.size();
    state->receipts.take(results[place], asked[place], now, measured);
    return true;
  }

  bool ask_again(Picos, RunEnd&) { return true; }
};

class FetchClient final : public AskingEnd<FetchAsker> {
 public:
  FetchClient(const ThreadSetup& setup, const SequencerOptions& options)
      : AskingEnd(setup, options),
        buffer_(Bytes(options.outstanding * sizeof(std::uint64_t)), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        segments_(options.outstanding),
        requests_(options.outstanding),
        asked_(options.outstanding) {
    auto* const results = reinterpret_cast<std::uint64_t*>(buffer_.data());
    const RemoteRegion& region = setup.lanes[0].peers.front().region;
    for (std::size_t j = 0; j < requests_.size(); ++j) {
      segments_[j] = {reinterpret_cast<std::uint64_t>(results + j), sizeof(std::uint64_t), mr_.lkey()};
      requests_[j].wr_id = send_id(0);
      requests_[j].sg_list = &segments_[j];
      requests_[j].num_sge = 1;
      requests_[j].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
      requests_[j].wr.atomic = {.remote_addr = region.address, .compare_add = 1, .swap = 0, .rkey = region.rkey};
    }
    queues_[0] = {
        .qp = setup.lanes[0].qp, .builder = setup.lanes[0].builder, .depth = options.outstanding, .ring = requests_};
    asker_.results = {results, requests_.size()};
    asker_.asked = asked_;
  }

  // It sends no message: the server's adapter answers.
  std::uint64_t sent_to(std::uint32_t) const override { return 0; }
  std::uint64_t received() const override { return 0; }

 private:
  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  std::vector<Asked> asked_;
};

// A thread of the machine that holds the counter: it has nothing to do.
class CounterHome final : public WorkloadOn<CounterHome>, public SequencerAccount {
 public:
  explicit CounterHome(const ThreadSetup& setup)
      : counter_(setup.thread == 0 ? reinterpret_cast<const std::uint64_t*>(setup.region.bytes.data()) : nullptr) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    wait_for_quit(node, control);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  const std::uint64_t* counter() const override { return counter_; }

 private:
  const std::uint64_t* counter_;
};

}  // namespace

std::unique_ptr<Workload> make_fetch_client(const ThreadSetup& setup, const SequencerOptions& options) {
  return std::make_unique<FetchClient>(setup, options);
}

std::unique_ptr<Workload> make_counter_home(const ThreadSetup& setup) {
  return std::make_unique<CounterHome>(setup);
}

}  // namespace verbscope
