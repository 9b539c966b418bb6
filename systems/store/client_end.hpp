// The workload of a client's thread that asks a store and is answered by messages: what is the same for all of them.
#pragma once

#include "systems/answers/client_loop.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

template <class End>
class StoreClientEnd : public WorkloadOn<End>, public StoreClientAccount {
 public:
  bool active() const override { return true; }
  std::uint64_t sent_to(std::uint32_t) const override { return parts_.book.counts.asked + parts_.book.counts.retries; }
  std::uint64_t received() const override { return parts_.book.done() + parts_.book.counts.surplus; }
  const StoreBook& book() const override { return parts_.book; }
  Picos window() const override { return window_; }

 protected:
  StoreClientEnd(const ThreadSetup& setup, const StoreOptions& options) : parts_(setup, options) {}

  // Asks until the run ends, as client_loop() does.
  template <Node N, class Asker, class State>
  void ask(N& node, Asker& asker, State& state, const RunControl& control, ThreadTally& tally) {
    client_loop(node, asker, state, control, tally);
    window_ = tally.window.end - tally.window.begin;
  }

  StoreBookParts parts_;

 private:
  Picos window_{0};
};

}  // namespace verbscope
