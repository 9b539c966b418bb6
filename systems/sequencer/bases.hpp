// The base classes of the designs' workloads: a thread that asks, and one that answers.
#pragma once

#include <array>
#include <vector>

#include "systems/answers/ports.hpp"
#include "systems/sequencer/ends.hpp"

namespace verbscope {

// A client thread; Asker as client_loop wants it. It asks on its first lane.
template <class Asker>
class AskingEnd : public WorkloadOn<AskingEnd<Asker>>, public SequencerAccount {
 public:
  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    client_loop(node, asker_, state_, control, tally);
  }

  bool active() const override { return true; }
  std::uint64_t sent_to(std::uint32_t) const override { return state_.receipts.asked + state_.receipts.retries; }
  std::uint64_t received() const override { return state_.receipts.received(); }
  const Receipts* receipts() const override { return &state_.receipts; }

 protected:
  AskingEnd(const ThreadSetup& setup, const SequencerOptions& options, std::uint32_t depth, std::uint32_t signal_every)
      : queues_{client_queue(setup.lanes[0], depth, signal_every)},
        state_{.cq = setup.cq,
               .queues = queues_,
               .retry_after = options.retry_after,
               .goal = setup.goal,
               .receipts = Receipts(*options.audit)} {
    asker_.state = &state_;
  }

  std::array<LaneQueue, 1> queues_;
  ClientState state_;
  Asker asker_;
};

// A worker; there is a worker_loop for its State, which has answered, served, counts and counter.
template <class State>
class AnsweringEnd : public WorkloadOn<AnsweringEnd<State>>, public SequencerAccount {
 public:
  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    worker_loop(node, state_, control, tally);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t sent_to(std::uint32_t node) const override { return answered_.at(node); }
  std::uint64_t received() const override { return state_.served; }
  const WorkerCounts* worker_counts() const override { return &state_.counts; }
  const std::uint64_t* counter() const override { return first_ ? state_.counter : nullptr; }
  std::uint64_t answers() const override { return state_.served; }

 protected:
  AnsweringEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : ports_(setup), answered_(setup.topology.clients), first_(setup.thread == 0) {
    state_.cq = setup.cq;
    state_.queues = ports_.queues();
    state_.answered = answered_;
    state_.counter = reinterpret_cast<std::uint64_t*>(setup.region.bytes.data());
    state_.batching = options.batching;
    state_.max_batch = options.max_batch;
  }

  AnswerPorts ports_;
  std::vector<std::uint64_t> answered_;
  bool first_;
  State state_;
};

}  // namespace verbscope
