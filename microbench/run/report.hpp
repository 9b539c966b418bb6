// The result of a point, typed: what each node found, and what comes of all of them. Each struct lists its fields once,
// in the order of the record (docs/records.md); a client's report crosses to the server as the same JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "machine/threads.hpp"
#include "microbench/bench/plan.hpp"

namespace verbscope {

struct ThreadReport {
  int core = 0;
  double rate_mops = 0;
  std::uint64_t ops = 0;  // counted in its window
  double window_s = 0;
  std::optional<double> rounds{};  // completions of each of its queues, where Workload::round says how many operations
  std::optional<std::string> node{};  // the thread's, where the threads of several nodes stand together

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("core", self.core);
    visit("rate_mops", self.rate_mops);
    visit("ops", self.ops);
    visit("window_s", self.window_s);
    visit("rounds", self.rounds);
    visit("node", self.node);
  }
};

// The rates that a node's threads, or those of several nodes, found in one window of a controller.
struct WindowRates {
  std::uint64_t ops = 0;
  double mops = 0;
  double first_half_mops = 0;
  double second_half_mops = 0;

  WindowRates& operator+=(const WindowRates& other) {
    ops += other.ops;
    mops += other.mops;
    first_half_mops += other.first_half_mops;
    second_half_mops += other.second_half_mops;
    return *this;
  }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("ops", self.ops);
    visit("mops", self.mops);
    visit("first_half_mops", self.first_half_mops);
    visit("second_half_mops", self.second_half_mops);
  }
};

// How steady the rate of a point was, where a time ends its window.
struct SteadyReport {
  std::uint64_t windows = 0;  // the last of them is the measured one
  double before_s = 0;        // from the start of the threads to the begin of that
  double first_half_mops = 0;
  double second_half_mops = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("windows", self.windows);
    visit("before_s", self.before_s);
    visit("first_half_mops", self.first_half_mops);
    visit("second_half_mops", self.second_half_mops);
  }
};

// CPU time in the window: in seconds, and all of it as a share of one core.
struct CpuReport {
  double user_s = 0;
  double system_s = 0;
  double cores = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("user_s", self.user_s);
    visit("system_s", self.system_s);
    visit("cores", self.cores);
  }
};

// Messages that --validate looked at, and those that it refused.
struct Validation {
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("checked", self.checked);
    visit("wrong", self.wrong);
  }
};

// The messages that should have come to a side, and what became of them.
struct Delivery {
  std::uint64_t expected = 0;
  std::uint64_t received = 0;
  Validation validation{};
  bool validated = false;  // --validate was given
  bool crosses = false;    // to another machine, whose books need `validation` in any case

  std::uint64_t lost() const { return expected > received ? expected - received : 0; }
  Delivery& operator+=(const Delivery& other) {
    expected += other.expected;
    received += other.received;
    validation.checked += other.validation.checked;
    validation.wrong += other.validation.wrong;
    return *this;
  }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("messages_expected", self.expected);
    visit("messages_received", self.received);
    visit.derived("lost", self.lost());
    visit.or_null("validation", self.validated, self.validation);
    visit.part("checked", self.crosses, self.validation);
  }
};

struct NodeReport {
  std::string node;     // "server", "client0"; it stands beside the report in JSON
  double window_s = 0;  // from the turn to measure to the turn to stop; with --iters the time of these operations
  std::vector<ThreadReport> threads;
  double rate_mops = 0;
  // Where both sides post: that of the server, and of all clients together.
  std::optional<double> rate_out_mops{}, rate_in_mops{};
  // The operations of the window, as counters of the same window want them: rate times window, or with --iters just
  // those that were counted, which `ops` has in any case.
  std::uint64_t window_ops = 0;
  std::uint64_t ops = 0;
  std::optional<SteadyReport> steadiness{};  // at the server
  Json findings = Json::object();            // the benchmark's own keys
  CpuReport cpu;
  std::optional<std::uint64_t> cq_armings;    // with --events
  std::optional<std::uint64_t> clients_gone;  // at the server: clients that left before the end
  bool has_peers = true;                      // false on the null device, where nobody counts messages
  Delivery delivery;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("window_s", self.window_s);
    visit("threads", self.threads);
    visit("rate_mops", self.rate_mops);
    visit("rate_out_mops", self.rate_out_mops);
    visit("rate_in_mops", self.rate_in_mops);
    visit("window_ops", self.window_ops);
    visit("ops", self.ops);
    visit("steadiness", self.steadiness);
    visit.rest(self.findings);
    visit("cpu", self.cpu);
    visit("cq_armings", self.cq_armings);
    visit("clients_gone", self.clients_gone);
    visit.part("messages_expected", self.has_peers, self.delivery);
  }
};

// The reports of the nodes that one process knows of.
struct PointReports {
  NodeReport own;                                  // the server's, or in a client's process the client's
  std::optional<std::vector<NodeReport>> clients;  // at a server that has clients
};

// The clock and the counters of a node between the beginning and the end of the window.
struct WindowUse {
  Picos time{0};
  CpuSeconds cpu;
  std::uint64_t armed = 0;  // times that completion queues were armed
};

CpuReport cpu_report(const WindowUse& use);

// Makes rate and operations of `report` those of a time and a count. By time: each thread's rate, of which `rate` is
// the sum, holds for the whole window. By --iters, where `span_s` is given and not 0: threads end one after the other,
// so it is `ops` over the seconds that all of them took together.
void set_rate(NodeReport& report, double rate, std::uint64_t ops, std::optional<double> span_s);

// Makes the result of a point of what its nodes report: messages are added up, and where the clients' windows make the
// rate (`counted` is theirs), rate, operations and threads are those of the clients; where both sides post, of all.
// Sets `failure`, when it is empty, if messages were wrong, or lost on a reliable transport.
PointReports make_result(PointReports reports, const Plan& plan, Side counted, std::string& failure);

// The record's `result`.
Json result_json(const PointReports& result);

}  // namespace verbscope
