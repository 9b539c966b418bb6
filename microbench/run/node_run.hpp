// One node's part of a run: its device, QPs and threads, through the steps prepare, connect, run, report. It knows
// neither how endpoints cross nor what makes its threads run: that is the link's affair (phase_machine.hpp).
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
  // connect: `nodes` are the endpoints of all machines, the server's first, of which it takes those of its peers. QPs
  // go to RTS, workloads are built.
  void connect(const std::vector<Json>& nodes);
  // Connects without a peer: every partner is the QP itself (null device).
  void connect_alone();

  // Their workloads are there after the connection.
  NodeThreads& threads() { return threads_; }
  const NodeThreads& threads() const { return threads_; }
  // One line about the first thread that failed; empty while none has.
  std::string failure() const;
  // The end of a line that says that completions are missing: what of the settings may be the reason; or empty.
  std::string why_missing() const;

  // This side's windows make the rate, alone or with those of the other side.
  bool counted() const { return part_.plan.operation.both_ways || part_.benchmark.traffic().counted == part_.side; }
  bool peers_count() const { return part_.plan.operation.both_ways || !counted(); }
  bool threads_end_window() const { return part_.plan.schedule.threads_end_it; }

  // After the threads have ended: their account of `window`. `expected` messages should have come; thread i had
  // cores[i]. Sets `failure`, when it is empty, if this side's windows make the rate and a thread measured nothing.
  NodeReport report(const WindowUse& window, std::uint64_t expected, const std::vector<int>& cores,
                    std::string& failure) const;

  // The line that tells of one window; `label` as in rate_text.
  std::string window_line(const WindowRates& rates, const char* label) const;

  // For the record: device, ports and their addresses, path MTU, memory of the buffers, what has relaxed ordering.
  Json describe() const;
  const Device& device() const { return device_.device(); }
  std::uint32_t mtu() const { return device_.ports().mtu(); }  // bytes, that of the path
  // What devices and peers have settled, as it overrides options in the record's config.
  Json settled() const;

 private:
  void build_workloads();
  void judge_count(const NodeReport& report, std::string& failure) const;
  void judge_thread(std::size_t thread, const ThreadReport& report, std::string& failure) const;

  NodePart part_;
  // In the order of dependence: destroyed from the last. The memory of the workloads outlives the QPs.
  NodeDevice device_;
  std::deque<SharedCompletions> shared_;  // one a group of threads that have the same QPs
  NodeThreads threads_;
  NodeQps qps_;
};

}  // namespace verbscope
