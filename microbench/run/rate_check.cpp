#include "microbench/run/rate_check.hpp"

#include <algorithm>
#include <cmath>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {

void Steadiness::begin(Picos now) {
  begin_ = now;
  ++intervals_;
}

bool Steadiness::halves_agree() const {
  const double larger = std::max(rates_.first_half_mops, rates_.second_half_mops);
  return std::abs(rates_.first_half_mops - rates_.second_half_mops) <= schedule_.steady_within * larger;
}

bool Steadiness::goes_on(const IntervalRates& rates, std::optional<double> counted_mops, bool settled, Picos now) {
  rates_ = rates;
  if (schedule_.threads_end_it) return false;
  const bool counters_agree = !counted_mops || std::abs(*counted_mops - rates.mops) <= kCountersAgree * *counted_mops;
  agreed_ = (agreed_ || halves_agree()) && counters_agree;
  if (agreed_ && settled) return false;
  // Leave an eighth of the time to wait for the first completions after each phase.
  const Picos left = (schedule_.longest - now) / 8 * 7;
  if (left < duration_) return false;
  duration_ = std::min(2 * duration_, left);
  return true;
}

std::string Steadiness::failure(const std::string& besides) const {
  if (schedule_.threads_end_it) return "";
  const double longest_s = to_seconds(schedule_.longest);
  if (gave_up_) {
    return fmt::format(
        "no rate within --longest {:g} s: an interval needs three completions of each QP, each of --cq_mod "
        "operations{}",
        longest_s, besides);
  }
  if (agreed_ || halves_agree()) return "";
  return fmt::format(
      "the rate was not steady within --longest {:g} s: {} Mops in the first half of the last interval, "
      "{} in the second{}",
      longest_s, with_digits(rates_.first_half_mops, 3), with_digits(rates_.second_half_mops, 3), besides);
}

SteadyReport Steadiness::report() const {
  return {.windows = intervals_,
          .before_s = to_seconds(begin_),
          .first_half_mops = rates_.first_half_mops,
          .second_half_mops = rates_.second_half_mops};
}

namespace {

// The count of the adapters of one side in the interval.
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

// More packets than this share, per second, are other traffic.
constexpr double kBackground = 1e-3;

// Packets per second of the ports by this counter of the kernel; nothing if it is missing or counts other traffic.
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

void check_against_ports(const Plan& plan, std::uint32_t mtu, Outcome& outcome) {
  const Operation& op = plan.operation;
  if (facts(op.transport).reliable || plan.topology.client_qps || plan.schedule.threads_end_it) return;
  const bool out = op.driver == Side::server;
  const double packets_per_op = std::max(1.0, std::ceil(static_cast<double>(op.payload) / mtu));
  for (const CounterReport& report : outcome.counters) {
    const std::optional<double> packets = packets_per_second(report, out ? "port_xmit_packets" : "port_rcv_packets");
    const std::optional<double> others = packets_per_second(report, out ? "port_rcv_packets" : "port_xmit_packets");
    if (!packets || (others && *others > kBackground * *packets)) continue;  // ACKs, or both ends are here
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
    if (outcome.result.value("ops", 0.0) < 2) return;  // one operation has no rate
    if (std::abs(adapter - rate) <= kCountersAgreeByCount * adapter) return;
    outcome.failure = fmt::format(
        "too few --iters for a rate: {:.0f} operations are {:.4g} Mops by the threads, and the adapters' {} were "
        "{:.4g} Mops",
        outcome.result.value("ops", 0.0), rate, counted->name, adapter);
  } else if (schedule.threads_end_it) {
    const double ops = outcome.result.value("ops", 0.0);
    if (all.operations >= (1 - kCountersAgree) * ops) return;
    outcome.failure =
        fmt::format("the threads counted {:.0f} operations, the adapters {:.0f} ({}): too few --iters for a rate", ops,
                    all.operations, counted->name);
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
