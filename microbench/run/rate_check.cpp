#include "microbench/run/rate_check.hpp"

#include <algorithm>
#include <cmath>

#include "microbench/run/steadiness.hpp"

namespace verbscope {

namespace {

// What a counter of the adapters of one side counted in the window.
struct OperationSum {
  double operations = 0;
  double window_s = 0;
};

OperationSum count_of(const OperationCount& counter, const std::vector<CounterReport>& reports) {
  OperationSum sum;
  for (const CounterReport& report : reports) {
    if (counter.side && (report.node == "server") != (*counter.side == Side::server)) continue;
    sum.operations += report.extra.value(counter.name, 0.0);
    sum.window_s = report.window_s;
  }
  return sum;
}

// Of a second: other packets by more than that are other traffic.
constexpr double kBackground = 1e-3;

// Packets a second of the ports by `counter`, as the kernel's counters say; nothing where there is no such counter, or
// where others use it.
std::optional<double> packets_per_second(const CounterReport& report, const std::string& counter) {
  if (report.source != "nic" || report.window_s <= 0 || !report.extra.contains("net")) return std::nullopt;
  double packets = 0, background = 0;
  for (const auto& [name, value] : report.extra.at("net").items()) {
    if (!name.ends_with("/counters/" + counter) || !value.is_number()) continue;
    packets += value.get<double>() / report.window_s;
    background += report.extra.at("background_per_s").value(name, 0.0);
  }
  if (packets <= 0 || background > kBackground * packets) return std::nullopt;
  return packets;
}

}  // namespace

void check_against_ports(const Plan& plan, const Traffic& traffic, std::uint32_t mtu, Outcome& outcome) {
  const Operation& op = plan.operation;
  if (facts(op.transport).reliable || traffic.client_qps || plan.schedule.threads_end_it) return;
  const bool out = traffic.driver == Side::server;
  const double packets_per_op = std::max(1.0, std::ceil(static_cast<double>(op.payload) / mtu));
  for (const CounterReport& report : outcome.counters) {
    const std::optional<double> packets = packets_per_second(report, out ? "port_xmit_packets" : "port_rcv_packets");
    const std::optional<double> others = packets_per_second(report, out ? "port_rcv_packets" : "port_xmit_packets");
    if (!packets || (others && *others > kBackground * *packets)) continue;  // answers, or both ends
    const double rate = outcome.result.value("rate_mops", 0.0);
    const double ports = *packets / packets_per_op * 1e-6;
    outcome.result["adapter_mops"] = ports;
    if (!outcome.failure.empty() || std::abs(ports - rate) <= kCountersAgree * ports) return;
    outcome.failure = fmt::format(
        "the rate is {:.4g} Mops by the threads and {:.4g} Mops by the packets of the ports: they "
        "differ by more than {:.0f} %",
        rate, ports, 100 * kCountersAgree);
    return;
  }
}

void check_against_counters(const std::optional<OperationCount>& counted, const Schedule& schedule, bool of_payloads,
                            Outcome& outcome) {
  if (!counted) return;
  const OperationSum all = count_of(*counted, outcome.counters);
  if (all.window_s <= 0) return;
  const double rate = outcome.result.value("rate_mops", 0.0);
  const double adapter = all.operations / all.window_s * 1e-6;
  outcome.result["adapter_mops"] = adapter;
  if (!outcome.failure.empty()) return;
  if (schedule.iters && of_payloads) {
    if (outcome.result.value("ops", 0.0) < 2) return;  // which is no rate at all
    if (std::abs(adapter - rate) <= kCountersAgreeByCount * adapter) return;
    outcome.failure = fmt::format(
        "too few --iters to tell a rate: {:.0f} operations are {:.4g} Mops by the threads, and the adapters' {} were "
        "{:.4g} Mops",
        outcome.result.value("ops", 0.0), rate, counted->name, adapter);
  } else if (schedule.threads_end_it) {
    const double ops = outcome.result.value("ops", 0.0);
    if (all.operations >= (1 - kCountersAgree) * ops) return;
    outcome.failure =
        fmt::format("the threads counted {:.0f} operations, the adapters {:.0f} ({}): too few --iters to tell a rate",
                    ops, all.operations, counted->name);
  } else if (std::abs(adapter - rate) > kCountersAgree * adapter) {
    outcome.failure = fmt::format(
        "the rate is {:.4g} Mops by the threads and {:.4g} Mops by the adapters' {}: they differ "
        "by more than {:.0f} % up to --longest {:g} s",
        rate, adapter, counted->name, 100 * kCountersAgree, to_seconds(schedule.longest));
  }
}

void check_against_bounds(const std::string& bounded, Outcome& outcome) {
  if (!outcome.failure.empty() || !outcome.prediction.is_object()) return;
  const double rate = outcome.result.value(bounded, 0.0);
  const double bound = outcome.prediction.value("bound_mops", 0.0);
  if (rate <= (1 + kCountersAgree) * bound) return;
  outcome.failure = fmt::format("the rate of {:.4g} Mops is above the {:.4g} Mops that {} allows", rate, bound,
                                outcome.prediction.value("binding", ""));
}

}  // namespace verbscope
