// The threads of the sequencer's three designs, as workloads.
#pragma once

#include <cstdint>
#include <memory>

#include "common/units.hpp"
#include "microbench/bench/benchmark.hpp"
#include "systems/requests/client.hpp"
#include "systems/requests/server.hpp"
#include "systems/sequencer/receipts.hpp"

namespace verbscope {

enum class SequencerDesign : std::uint8_t { herd, spec, atomic };

struct SequencerOptions {
  SequencerDesign design = SequencerDesign::herd;
  bool batching = false;
  std::uint32_t max_batch = 16;   // largest number of responses per doorbell
  std::uint32_t outstanding = 4;  // outstanding requests of a client thread
  std::uint64_t start_value = 0;  // the first value
  Picos retry_after{0};           // a request without a response is sent again after this; RC: never
  std::uint32_t workers = 1;
  std::shared_ptr<ValueAudit> audit;  // the values that this process received
  bool audit_shared = false;          // this process plays every role: simulated
};

// Bytes of the server's region, whose first word is the counter.
std::uint64_t sequencer_region_bytes(const SequencerOptions& options, std::uint32_t client_threads);

// The results of a thread of a sequencer after the run; null: it has none of that kind.
struct SequencerAccount {
  virtual ~SequencerAccount() = default;
  virtual const Receipts* receipts() const { return nullptr; }
  virtual const PassCounts* worker_counts() const { return nullptr; }
  virtual const std::uint64_t* counter() const { return nullptr; }  // the server's first thread has it
  virtual std::uint64_t answers() const { return 0; }               // a worker's answers
  virtual std::uint64_t corrections() const { return 0; }           // responses of a worker that corrected a guess
};

// Makes the workload of a thread of either side.
std::unique_ptr<Workload> make_sequencer_end(const ThreadSetup& setup, const SequencerOptions& options);

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
    if constexpr (requires { this->server_.watch(node); }) this->server_.watch(node);
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
