// The base classes of the designs' workloads: a thread that asks, and one that answers.
#pragma once

#include "systems/rpc/client.hpp"
#include "systems/rpc/server.hpp"
#include "systems/sequencer/ends.hpp"

namespace verbscope {

// A client thread.
template <class Asker>
class AskingEnd : public RequestClientEnd<Asker, ClientState>, public SequencerAccount {
 public:
  std::uint64_t sent_to(std::uint32_t) const override {
    return this->state_.receipts.asked + this->state_.receipts.retries;
  }
  std::uint64_t received() const override { return this->state_.receipts.received(); }
  const Receipts* receipts() const override { return &this->state_.receipts; }

 protected:
  AskingEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : RequestClientEnd<Asker, ClientState>(setup, {{}, Receipts(*options.audit)}, options.retry_after) {
    this->asker_.outstanding = options.outstanding;
  }
};

// A worker: Server has `counter`, the next value, and a serve().
template <class Server>
class AnsweringEnd : public RequestServerEnd<AnsweringEnd<Server>, Server>, public SequencerAccount {
 public:
  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    this->server_.watch(node);
    server_loop(node, this->server_, control, tally, [](N& by, Server& s, RunEnd& end) { return serve(by, s, end); });
  }

  const PassCounts* worker_counts() const override { return &this->server_.counts; }
  const std::uint64_t* counter() const override { return first_ ? this->server_.counter : nullptr; }
  std::uint64_t answers() const override { return this->server_.served; }

 protected:
  AnsweringEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : RequestServerEnd<AnsweringEnd<Server>, Server>(setup, {}, options.batching, options.max_batch),
        first_(setup.thread == 0) {
    this->server_.counter = reinterpret_cast<std::uint64_t*>(setup.region.bytes.data());
  }

 private:
  bool first_;
};

}  // namespace verbscope
