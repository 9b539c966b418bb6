// The threads of one node in a run: their workloads, their progress, and their results.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// The cause of an end, for an error message: "post: Invalid argument".
std::string describe(const RunEnd& end);

class NodeThreads {
 public:
  explicit NodeThreads(std::size_t count) : tallies_(count) {}

  // Gives the next thread its data path; each has one before any of them starts.
  void add(std::unique_ptr<Workload> workload) { workloads_.push_back(std::move(workload)); }

  std::size_t size() const { return tallies_.size(); }
  Workload& workload(std::size_t thread) { return *workloads_[thread]; }
  const Workload& workload(std::size_t thread) const { return *workloads_[thread]; }
  ThreadTally& tally(std::size_t thread) { return tallies_[thread]; }
  const ThreadTally& tally(std::size_t thread) const { return tallies_[thread]; }

  bool counts() const;  // a thread counts operations

  // While the threads run.
  bool active_ended() const;  // every thread that drives traffic has ended
  // Every thread that counts has noted `phase` (measure, halved or closed) of this interval.
  bool intervals_noted(Phase phase) const;
  // Call before another interval begins: resets what was noted.
  void forget_intervals();
  // The rates, after every thread that counts has noted the end of the interval.
  IntervalRates interval_rates() const;
  std::uint64_t received() const;
  std::uint64_t completed() const;  // operations of all threads so far, to detect progress
  std::uint64_t armed() const;      // times that the threads have armed their completion queues so far
  // The first thread that ended in an error; empty while none has.
  std::optional<std::size_t> failed() const;

  // After the run: the messages that they have sent to `node` of the other side.
  std::uint64_t sent_to(std::uint32_t node) const;

  // After the threads have ended: the report of one, which ran on `core`.
  ThreadReport report(std::size_t thread, int core) const;
  // The time from the first begin to the last end of the intervals of threads that counted operations; 0 if none did.
  Picos counted_span() const;
  // The rate of all threads from their start to the begin of their intervals, in Mops; 0 without a warm-up.
  double rate_before() const;
  // The messages of all threads, of `expected` ones.
  Delivery delivery(std::uint64_t expected, bool validated) const;
  // The benchmark's own keys for the report.
  Json findings(const Benchmark& benchmark) const;
  // The memory of the buffers for the record, each kind once.
  Json describe_memory() const;
  bool relaxed() const;  // they are registered with relaxed ordering

 private:
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::deque<ThreadTally> tallies_;
};

}  // namespace verbscope
