// The threads of the sequencer's three designs, as workloads.
#pragma once

#include <cstdint>
#include <memory>

#include "common/units.hpp"
#include "microbench/bench/benchmark.hpp"
#include "systems/rpc/server.hpp"
#include "systems/sequencer/receipts.hpp"

namespace verbscope {

enum class SequencerDesign : std::uint8_t { herd, spec, atomic };

struct SequencerOptions {
  SequencerDesign design = SequencerDesign::herd;
  bool batching = false;
  std::uint32_t max_batch = 16;   // answers behind one doorbell
  std::uint32_t outstanding = 4;  // requests of a client thread
  std::uint64_t start_value = 0;  // the first value that is handed out
  Picos retry_after{0};           // when an answer that has not come is asked for again; RC: never
  std::uint32_t workers = 1;
  std::shared_ptr<ValueAudit> audit;  // the values that this process received
  bool audit_shared = false;          // this process plays every role: simulated
};

// Bytes of the server's region, whose first word is the counter, with so many client threads.
std::uint64_t sequencer_region_bytes(const SequencerOptions& options, std::uint32_t client_threads);

// The account that a thread of a sequencer gives after the run; null: it has nothing of that kind.
struct SequencerAccount {
  virtual ~SequencerAccount() = default;
  virtual const Receipts* receipts() const { return nullptr; }
  virtual const PassCounts* worker_counts() const { return nullptr; }
  virtual const std::uint64_t* counter() const { return nullptr; }  // the server's first thread has it
  virtual std::uint64_t answers() const { return 0; }               // a worker's answers
  virtual std::uint64_t corrections() const { return 0; }           // a worker's answers that corrected a guess
};

// Makes the workload of a thread of either side.
std::unique_ptr<Workload> make_sequencer_end(const ThreadSetup& setup, const SequencerOptions& options);

std::unique_ptr<Workload> make_herd_client(const ThreadSetup& setup, const SequencerOptions& options);
std::unique_ptr<Workload> make_herd_worker(const ThreadSetup& setup, const SequencerOptions& options);
std::unique_ptr<Workload> make_spec_client(const ThreadSetup& setup, const SequencerOptions& options);
std::unique_ptr<Workload> make_spec_worker(const ThreadSetup& setup, const SequencerOptions& options);
std::unique_ptr<Workload> make_fetch_client(const ThreadSetup& setup, const SequencerOptions& options);
std::unique_ptr<Workload> make_counter_home(const ThreadSetup& setup);

}  // namespace verbscope
