// The result of a point as structs: the report of each node, and the combined result. Each struct lists its fields
// once, in the order of the record (docs/records.md). A client sends its report to the server as the same JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "common/json.hpp"
#include "common/record.hpp"
#include "machine/threads.hpp"
#include "microbench/bench/option_table.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/bench/plan.hpp"

namespace verbscope {

struct ThreadReport {
  int core = 0;
  double rate_mops = 0;
  std::uint64_t ops = 0;  // counted in its interval
  double window_s = 0;
  std::optional<double> rounds{};     // completions of each of its queues, if Workload::round is not 0
  std::optional<std::string> node{};  // of the thread, if the list has threads of several nodes

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

// The rates that the threads of one node, or of several, have in one interval.
struct IntervalRates {
  std::uint64_t ops = 0;
  double mops = 0;
  double first_half_mops = 0;
  double second_half_mops = 0;

  IntervalRates& operator+=(const IntervalRates& other) {
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

// The steadiness of a rate, if a time ends the interval.
struct SteadyReport {
  std::uint64_t windows = 0;  // intervals; the last is the measured one
  double before_s = 0;        // from the start of the threads to the begin of the last interval
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

// CPU time in the interval: seconds, and the number of cores that they amount to.
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

// Messages that --validate checked, and those that were wrong.
struct Validation {
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("checked", self.checked);
    visit("wrong", self.wrong);
  }
};

// The messages that a side should receive, and those that it received.
struct Delivery {
  std::uint64_t expected = 0;
  std::uint64_t received = 0;
  Validation validation{};
  bool validated = false;  // --validate was given
  bool crosses = false;    // the report is sent to another machine, with `validation` in any case

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
  std::string node;     // "server", "client0"; in JSON it is outside the report
  double window_s = 0;  // from phase measure to phase closed; with --iters the time of these operations
  std::vector<ThreadReport> threads;
  double rate_mops = 0;
  // If both sides post: the rate of the server, and of all clients together.
  std::optional<double> rate_out_mops{}, rate_in_mops{};
  // The operations to compare with counters of the same interval: rate times time, or with --iters the counted ones,
  // which `ops` always has.
  std::uint64_t window_ops = 0;
  std::uint64_t ops = 0;
  std::optional<SteadyReport> steadiness{};  // at the server
  Json findings = Json::object();            // the benchmark's own keys
  CpuReport cpu;
  std::optional<std::uint64_t> cq_armings;    // with --events
  std::optional<std::uint64_t> clients_gone;  // at the server: clients that left before the end
  bool has_peers = true;                      // false on the null device, which delivers no messages
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

// The reports that one process has.
struct PointReports {
  NodeReport own;                                  // the server's, or in a client's process the client's
  std::optional<std::vector<NodeReport>> clients;  // at a server that has clients
};

// Time, CPU time and armings of a node in the interval.
struct IntervalUse {
  Picos time{0};
  CpuSeconds cpu;
  std::uint64_t armed = 0;  // times that completion queues were armed
};

CpuReport cpu_report(const IntervalUse& use);

// Sets the rate and the operations of `report`. Interval by time: the rate is `rate`, the sum of the threads' rates. By
// --iters, if `span_s` is given and not 0: threads end one after the other, so the rate is `ops` per `span_s`, the
// seconds from the first begin to the last end.
void set_rate(NodeReport& report, double rate, std::uint64_t ops, std::optional<double> span_s);

// Combines the reports of the nodes into the result of a point. Messages are summed. Rate, operations and threads are
// those of the clients if Operation::counted is the client side, and those of all nodes if both sides post. Sets
// `failure`, if it is empty, if messages were wrong, or lost on a reliable transport.
PointReports make_result(PointReports reports, const Plan& plan, std::string& failure);

// The record's `result`.
Json result_json(const PointReports& result);

// Fills a record from the outcome, the options of `table`, and `environment`.
void fill_record(Record& record, const Outcome& outcome, const OptionTable& table, Json environment);

// The sum of the numbers under `key` in each client's result. Throws Error with the client's name
// if it has none. On the null device there are no clients: 0.
double sum_over_clients(const Json& result, const std::string& key);

// Removes the histogram (Histogram::pack) under `key` from each client's result, and returns their sum. Throws Error
// with the client's name if it has none. On the null device there are no clients: an empty one.
Histogram take_client_histograms(Json& result, const std::string& key);

}  // namespace verbscope
