#include "microbench/run/sim_window.hpp"

#include "drivers_patch/counter_report.hpp"
#include "drivers_patch/objects.hpp"
#include "microbench/run/sim_usage.hpp"

namespace verbscope {
namespace {

// Of two moments: each count by name, with its rise.
template <class Counts, class Visit>
void each_difference(const Counts& begin, const Counts& end, Visit&& visit) {
  std::vector<std::uint64_t> before;
  Counts::each(begin, [&](const char*, std::uint64_t value) { before.push_back(value); });
  std::size_t i = 0;
  Counts::each(end, [&](const char* name, std::uint64_t value) { visit(name, value - before[i++]); });
}

}  // namespace

SimWindow::Moment SimWindow::counts() const {
  Moment now{cluster_.now(), {}};
  if (driver::counting()) now.driver = driver::summarize_process();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const int node = static_cast<int>(i);
    now.nodes.push_back({cluster_.pcie_counts(node), cluster_.nic_counts(node), cluster_.ethernet_counts(node),
                         cluster_.deepest_queue(node), cluster_.usage_times(node), cluster_.busy_time(node),
                         nodes_[i].threads().armed()});
  }
  return now;
}

WindowUse SimWindow::use(std::size_t node) const {
  const NodeCounts &begin = begin_.nodes[node], &end = end_.nodes[node];
  return {.time = end_.time - begin_.time,
          .cpu = {.user_s = to_seconds(end.busy - begin.busy), .system_s = 0},
          .armed = end.armed - begin.armed};
}

double SimWindow::counted_mops(const OperationCount& counter) const {
  std::uint64_t count = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (counter.side && (node == 0) != (*counter.side == Side::server)) continue;
    NicCounts::each(end_.nodes[node].nic,
                    [&](const char* name, std::uint64_t value) { count += name == counter.name ? value : 0; });
    NicCounts::each(begin_.nodes[node].nic,
                    [&](const char* name, std::uint64_t value) { count -= name == counter.name ? value : 0; });
  }
  return to_mops(Ops(count), end_.time - begin_.time);
}

bool SimWindow::translations_settled() const {
  constexpr double kHardly = 0.01;     // of the look-ups
  constexpr double kFew = 0.033;       // delay an operation by a hundredth: a miss takes three tenths of its way
  constexpr double kMaxUsed = 0.7;     // of units that have time to wait for it
  constexpr std::uint64_t kTurns = 3;  // once to fill; then entries leave at random: of the first, 14 % are left
  const std::uint64_t turned_over = kTurns * cluster_.translation_places();
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const NicCounts &begin = begin_.nodes[node].nic, &end = end_.nodes[node].nic;
    const auto misses = static_cast<double>(end.translation_misses - begin.translation_misses);
    const double looks = misses + static_cast<double>(end.translation_hits - begin.translation_hits);
    if (misses <= kHardly * looks || end.translation_misses >= turned_over) continue;
    if (misses > kFew * looks) return false;
    if (use_of_units(begin_.nodes[node].usage, end_.nodes[node].usage, end_.time - begin_.time) > kMaxUsed)
      return false;
  }
  return true;
}

std::string SimWindow::disturbances() const {
  std::uint64_t naks = 0, resent = 0, lost = 0, full = 0;
  for (std::size_t node = 0; node < end_.nodes.size(); ++node) {
    naks += end_.nodes[node].nic.rnr_naks_sent - begin_.nodes[node].nic.rnr_naks_sent;
    const NicCounts now = cluster_.nic_counts(static_cast<int>(node));
    resent += now.packets_resent;
    lost += now.dropped_by_switch;
    full += cluster_.ethernet_counts(static_cast<int>(node)).value_or(EthernetCounts{}).dropped_full_buffer;
  }
  std::string text;
  if (naks > 0) text += fmt::format("; {} RNR NAKs: messages found no RECV posted (--rx_depth)", naks);
  if (lost > 0) text += fmt::format("; packets that the network lost: {} (loss_probability of the profile)", lost);
  if (full > 0) text += fmt::format("; packets that full buffers of the network dropped: {} (--flow_control)", full);
  if (resent > 0) {
    text += fmt::format("; packets sent again: {} (a QP that lost its last one waits for --qp_timeout)", resent);
  }
  return text;
}

CounterReport SimWindow::counters(std::size_t node, const Profile& profile) const {
  const NodeCounts &begin = begin_.nodes[node], &end = end_.nodes[node];
  CounterReport report{.source = "sim",
                       .node = nodes_[node].name(),
                       .blind = "",
                       .window_s = to_seconds(end_.time - begin_.time),
                       .events = end.pcie};
  std::vector<std::uint64_t> events;
  each_difference(begin.pcie, end.pcie, [&](const char*, std::uint64_t value) { events.push_back(value); });
  std::size_t i = 0;
  PcieCounts::each(report.events, [&](const char*, std::uint64_t& value) { value = events[i++]; });
  const auto keep = [&report](const char* name, std::uint64_t value) { report.extra[name] = value; };
  each_difference(begin.nic, end.nic, keep);
  if (end.ethernet) {
    each_difference(*begin.ethernet, *end.ethernet, keep);
    report.extra["deepest_queue_bytes"] = end.deepest_queue;  // since the run began
  }
  report.extra.update(usage_json(begin.usage, end.usage, profile));
  return report;
}

CounterReport SimWindow::driver_counters(std::size_t node, const CountedProvider& provider) const {
  const driver::Summary last = driver::summarize_process();
  CounterReport report =
      driver::counter_report(last.wire, driver::difference(provider.sums(end_.driver), provider.sums(begin_.driver)),
                             to_seconds(end_.time - begin_.time));
  report.node = nodes_[node].name();
  // In the window the link carries what was posted before it, and leaves what is under way at its end: of the run from
  // its beginning to its rest both have seen the same.
  const driver::Sums whole = provider.sums(last);
  const NicCounts nic = cluster_.nic_counts(static_cast<int>(node));
  const std::uint64_t state_lines = nic.qp_context_read_lines + nic.translation_misses;  // which no driver sees
  driver::PcieCost not_polled;  // at the rest every request is done
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
