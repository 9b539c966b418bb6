// One node of a run: its device, QPs and threads, through the steps prepare, connect, run, report. The link
// (fabric.hpp) exchanges the endpoints and runs the threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/node_device.hpp"
#include "microbench/run/node_qps.hpp"
#include "microbench/run/node_threads.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

class NodeRun {
 public:
  // prepare: opens the ports in use, creates CQs and QPs. Throws Error.
  NodeRun(const Benchmark& benchmark, const Plan& plan, Side side, std::uint32_t client, const NodePlace& place);
  NodeRun(const NodeRun&) = delete;
  NodeRun& operator=(const NodeRun&) = delete;

  // "server", "client0".
  std::string name() const { return part_.name(); }
  // Ports, QPs and the region, for the other side.
  Json endpoints() const { return qps_.endpoints(); }
  // connect: changes the QPs to RTS and builds the workloads. `nodes`: the endpoints of all machines, the server's
  // first.
  void connect(const std::vector<Json>& nodes);
  // Connects without a peer: every partner is the QP itself (null device), or there are no QPs.
  void connect_alone();

  // Their workloads exist after the connection.
  NodeThreads& threads() { return threads_; }
  const NodeThreads& threads() const { return threads_; }
  // One line about the first thread that failed; empty if none has.
  std::string failure() const;
  // Settings that may be the reason for missing completions, as the end of a line; or empty.
  std::string why_missing() const;

  // This side's intervals make the rate, alone or with those of the other side.
  bool counted() const { return part_.plan.operation.both_ways || part_.plan.operation.counted == part_.side; }
  bool peers_count() const { return part_.plan.operation.both_ways || !counted(); }
  bool is_server() const { return part_.side == Side::server; }
  bool threads_end_interval() const { return part_.plan.schedule.threads_end_it; }

  // After the threads have ended: their report of the interval. `expected`: messages that should have arrived. Thread i
  // had cores[i]. Sets `failure`, if it is empty, if this side makes the rate and a thread measured nothing.
  NodeReport report(const IntervalUse& interval, std::uint64_t expected, const std::vector<int>& cores,
                    std::string& failure) const;

  // The console line of one interval; `label` as in rate_text.
  std::string interval_line(const IntervalRates& rates, const char* label) const;

  // For the record: device, ports and their addresses, path MTU, memory of the buffers, memory with relaxed ordering.
  Json describe() const;
  const Device& device() const { return device_.device(); }
  std::uint32_t mtu() const { return device_.ports().mtu(); }  // bytes, that of the path
  // Settings agreed between devices and peers, as they override options in the record's config.
  Json settled() const;

 private:
  void build_workloads();
  void check_count(const NodeReport& report, std::string& failure) const;
  void check_thread(std::size_t thread, const ThreadReport& report, std::string& failure) const;

  NodePart part_;
  // In the order of dependence: destroyed from the last. The memory of the workloads outlives the QPs.
  NodeDevice device_;
  std::deque<SharedCompletions> shared_;  // one per group of threads that share QPs
  NodeThreads threads_;
  NodeQps qps_;
};

}  // namespace verbscope
