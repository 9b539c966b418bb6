#include "microbench/run/sim_interval.hpp"

#include "drivers_patch/counter_report.hpp"
#include "drivers_patch/objects.hpp"

namespace verbscope {

SimInterval::Moment SimInterval::counts() const {
  Moment now{.time = cluster_.now(), .nodes = {}, .armed = {}};
  if (driver::counting()) now.driver = driver::summarize_process();
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const int node = static_cast<int>(i);
    now.nodes.push_back(node_counts(cluster_, node));
    now.armed.push_back(armed_(i));
  }
  return now;
}

IntervalUse SimInterval::use(std::size_t node) const {
  const NodeCounts &begin = begin_.nodes[node], &end = end_.nodes[node];
  return {.time = end_.time - begin_.time,
          .cpu = {.user_s = to_seconds(end.busy - begin.busy), .system_s = 0},
          .armed = end_.armed[node] - begin_.armed[node]};
}

double SimInterval::counted_mops(const OperationCount& counter) const {
  std::uint64_t count = 0;
  for (std::size_t node = 0; node < names_.size(); ++node) {
    if (counter.side && (node == 0) != (*counter.side == Side::server)) continue;
    NicCounts::each(end_.nodes[node].nic,
                    [&](const char* name, std::uint64_t value) { count += name == counter.name ? value : 0; });
    NicCounts::each(begin_.nodes[node].nic,
                    [&](const char* name, std::uint64_t value) { count -= name == counter.name ? value : 0; });
  }
  return to_mops(Ops(count), end_.time - begin_.time);
}

bool SimInterval::translations_settled() const {
  constexpr double kRareMisses = 0.01;  // of the look-ups
  // Misses that delay an operation by 1 %: a miss takes 30 % of the time of an operation.
  constexpr double kFewMisses = 0.033;
  constexpr double kMaxUnitUse = 0.7;  // units below this have time to wait for misses
  // The first turn fills the cache; later entries replace others at random: 14 % of the first remain.
  constexpr std::uint64_t kTurns = 3;
  const std::uint64_t turned_over = kTurns * cluster_.translation_places();
  for (std::size_t node = 0; node < names_.size(); ++node) {
    const NicCounts &begin = begin_.nodes[node].nic, &end = end_.nodes[node].nic;
    const auto misses = static_cast<double>(end.translation_misses - begin.translation_misses);
    const double lookups = misses + static_cast<double>(end.translation_hits - begin.translation_hits);
    if (misses <= kRareMisses * lookups || end.translation_misses >= turned_over) continue;
    if (misses > kFewMisses * lookups) return false;
    if (use_of_units(begin_.nodes[node], end_.nodes[node], end_.time - begin_.time) > kMaxUnitUse) return false;
  }
  return true;
}

std::string SimInterval::disturbances() const {
  std::uint64_t naks = 0, resent = 0, lost = 0, full = 0;
  for (std::size_t node = 0; node < end_.nodes.size(); ++node) {
    naks += end_.nodes[node].nic.rnr_naks_sent - begin_.nodes[node].nic.rnr_naks_sent;
    const NicCounts now = cluster_.nic_counts(static_cast<int>(node));
    resent += now.packets_resent;
    lost += now.dropped_by_switch;
    full += cluster_.ethernet_counts(static_cast<int>(node)).value_or(EthernetCounts{}).dropped_full_buffer;
  }
  std::string text;
  if (naks > 0) text += fmt::format("; {} RNR NAKs: no RECV was posted for these messages (--rx_depth)", naks);
  if (lost > 0) text += fmt::format("; {} packets were lost by the network (loss_probability of the profile)", lost);
  if (full > 0) text += fmt::format("; {} packets were dropped by full buffers of the network (--flow_control)", full);
  if (resent > 0) {
    text += fmt::format("; {} packets were sent again (a QP that lost its last packet waits for --qp_timeout)", resent);
  }
  return text;
}

CounterReport SimInterval::counters(std::size_t node, const Profile& profile) const {
  return counter_report(begin_.nodes[node], end_.nodes[node], end_.time - begin_.time, names_[node], profile);
}

CounterReport SimInterval::driver_counters(std::size_t node, const CallCounter& counter) const {
  const driver::Summary last = driver::summarize_process();
  CounterReport report =
      driver::counter_report(last.wire, driver::difference(counter.sums(end_.driver), counter.sums(begin_.driver)),
                             to_seconds(end_.time - begin_.time));
  report.node = names_[node];
  // During the interval the link also carries requests posted before it, and does not finish those outstanding at its
  // end. Over the whole run, until the cluster is idle, link and driver have seen the same requests.
  const driver::Sums whole = counter.sums(last);
  const NicCounts nic = cluster_.nic_counts(static_cast<int>(node));
  const std::uint64_t state_lines = nic.qp_context_read_lines + nic.translation_misses;  // no driver sees these
  driver::PcieCost not_polled;  // the cluster is idle: every request is done
  driver::add_cqes(last.wire,
                   whole.sends.signaled - whole.send_completions + nic.messages_received - whole.received.completions,
                   not_polled);
  report.extra["whole_run"] = {{"by_opcode", driver::by_opcode_json(whole.sends.by_opcode)},
                               {"exact", driver::events_json(whole.pcie.exact)},
                               {"adapter_decides_least", driver::events_json(whole.pcie.least)},
                               {"adapter_decides_most", driver::events_json(whole.pcie.most)},
                               {"payload_bytes_by_opcode", driver::by_opcode_json(whole.sends.bytes_by_opcode)},
                               {"contexts_and_translations_read_lines", state_lines},
                               {"cqes_not_polled", driver::events_json(not_polled.exact)},
                               {"link", driver::events_json(cluster_.pcie_counts(static_cast<int>(node)))}};
  return report;
}

}  // namespace verbscope
