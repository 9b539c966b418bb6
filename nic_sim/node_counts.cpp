#include "nic_sim/node_counts.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace verbscope {
namespace {

// Visits each count by name with its increase between two moments.
template <class Counts, class Visit>
void each_difference(const Counts& begin, const Counts& end, Visit&& visit) {
  std::vector<std::uint64_t> before;
  Counts::each(begin, [&](const char*, std::uint64_t value) { before.push_back(value); });
  std::size_t i = 0;
  Counts::each(end, [&](const char* name, std::uint64_t value) { visit(name, value - before[i++]); });
}

// The end may have entries that the begin does not have. A poll under way at the begin that finds nothing later counts
// as no work: a negative difference is 0.
std::vector<std::int64_t> differences(const std::vector<Picos>& begin, const std::vector<Picos>& end) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < end.size(); ++i)
    out.push_back(std::max<std::int64_t>(0, (end[i] - (i < begin.size() ? begin[i] : Picos(0))).count()));
  return out;
}

std::vector<Picos> member(const std::vector<UnitTime>& units, Picos UnitTime::*time) {
  std::vector<Picos> out;
  for (const UnitTime& unit : units) out.push_back(unit.*time);
  return out;
}

std::int64_t sum(const std::vector<std::int64_t>& times) {
  return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}
std::int64_t largest(const std::vector<std::int64_t>& times) {
  return times.empty() ? 0 : *std::ranges::max_element(times);
}

std::vector<std::int64_t> differences(const std::vector<UnitTime>& begin, const std::vector<UnitTime>& end,
                                      Picos UnitTime::*time) {
  return differences(member(begin, time), member(end, time));
}

void add_units(Json& json, const std::string& name, const std::vector<UnitTime>& begin,
               const std::vector<UnitTime>& end) {
  const auto busy = differences(begin, end, &UnitTime::busy);
  json[name + "_units"] = busy.size();
  json[name + "_units_used"] = std::ranges::count_if(busy, [](std::int64_t time) { return time > 0; });
  json[name + "_busy_ps"] = sum(busy);
  json[name + "_waited_ps"] = sum(differences(begin, end, &UnitTime::waited));
  json[name + "_held_up_ps"] = sum(differences(begin, end, &UnitTime::held_up));
  json[name + "_rereading_ps"] = sum(differences(begin, end, &UnitTime::rereading));
}

// By unit or QP: busy, waiting and held up.
std::vector<std::int64_t> in_use(const std::vector<UnitTime>& begin, const std::vector<UnitTime>& end) {
  std::vector<std::int64_t> all = differences(begin, end, &UnitTime::busy);
  for (Picos UnitTime::*time : {&UnitTime::waited, &UnitTime::held_up}) {
    const auto more = differences(begin, end, time);
    std::ranges::transform(all, more, all.begin(), std::plus());
  }
  return all;
}

// The QP that units served longest, one unit at a time.
void add_busiest(Json& json, const std::string& name, const std::vector<UnitTime>& begin,
                 const std::vector<UnitTime>& end) {
  const auto waited = differences(begin, end, &UnitTime::waited);
  const auto held_up = differences(begin, end, &UnitTime::held_up);
  const auto rereading = differences(begin, end, &UnitTime::rereading);
  const std::vector<std::int64_t> all = in_use(begin, end);
  const auto busiest = static_cast<std::size_t>(std::ranges::max_element(all) - all.begin());
  json[name + "_busiest_unit_ps"] = largest(all);
  json[name + "_busiest_waited_ps"] = all.empty() ? 0 : waited[busiest];
  json[name + "_busiest_held_up_ps"] = all.empty() ? 0 : held_up[busiest];
  json[name + "_busiest_rereading_ps"] = all.empty() ? 0 : rereading[busiest];
}

// The time of each step of an operation on an idle machine: paths between host, adapters and peers, and units.
Json steps(const Profile& profile) {
  const HostProfile& host = profile.host;
  const LinkProfile& link = profile.link;
  const NicProfile& nic = profile.nic;
  const auto memory_read = 2 * link.propagation + host.memory_read + host.memory_read_jitter / 2;
  return {{"mmio", (link.propagation + nic.front_end).count()},
          {"dma_read", memory_read.count()},
          {"dma_write", (link.propagation + host.memory_write).count()},
          {"fabric", (nic.transmit + 2 * profile.fabric.cable + profile.fabric.switch_latency).count()},
          {"far_qp_context", nic.far_qp_context.count()},
          {"doorbell_wqe", (nic.doorbell_wqe + nic.wqe_block).count()},
          {"blueflame_wqe", (nic.blueflame_wqe + nic.wqe_block).count()},
          {"gather", nic.gather.count()},
          {"reread_wqe", nic.reread_wqe.count()},
          {"receive", (nic.receive_packet + nic.receive_dma).count()},
          {"read_request", nic.read_request.count()},
          {"read_response", nic.read_response.count()},
          {"atomic_packet", nic.atomic_packet.count()},
          {"atomic_operation", nic.atomic_operation.count()},
          {"handle_ack", nic.handle_ack.count()},
          {"handle_response", nic.handle_response.count()}};
}

// The time that each part was in use between `begin` and `end`, in picoseconds (docs/records.md lists the keys). For
// several units, ports, slots or threads: their number, the sum of their times, and the time of the busiest.
Json usage_json(const UsageTimes& begin, const UsageTimes& end, const Profile& profile) {
  Json json{
      {"pcie_to_nic_busy_ps", (end.pcie_to_nic - begin.pcie_to_nic).count()},
      {"pcie_to_host_busy_ps", (end.pcie_to_host - begin.pcie_to_host).count()},
      {"mmio_busy_ps", (end.mmio - begin.mmio).count()},
      {"read_tags", profile.link.read_tags},
      {"read_tags_held_ps", (end.read_tags_held - begin.read_tags_held).count()},
      {"read_tags_held_idle_ps", (end.read_tags_held_idle - begin.read_tags_held_idle).count()},
      {"qp_context_reads", profile.nic.qp_context_reads},
      {"qp_context_reads_held_ps", (end.qp_context_reads_held - begin.qp_context_reads_held).count()},
      {"qp_context_reads_held_idle_ps", (end.qp_context_reads_held_idle - begin.qp_context_reads_held_idle).count()}};
  add_units(json, "requester", begin.requester_units, end.requester_units);
  add_busiest(json, "requester", begin.requester_qps, end.requester_qps);
  add_units(json, "responder", begin.responder_units, end.responder_units);
  add_busiest(json, "responder", begin.responder_qps, end.responder_qps);
  json["wqe_cache_bytes"] = profile.nic.wqe_cache.value;
  json["sent_wqe_cache_bytes"] = profile.nic.sent_wqe_cache.value;
  json["near_qp_contexts"] = profile.nic.near_qp_contexts;
  json["steps_ps"] = steps(profile);
  const auto several = [&json](const char* count, const std::string& name, const std::vector<std::int64_t>& times) {
    json[count] = times.size();
    json[name + "_ps"] = sum(times);
    json[name + "_most_ps"] = largest(times);
  };
  several("ports", "wire_out_busy", differences(begin.ports_out, end.ports_out));
  several("ports", "wire_in_busy", differences(begin.ports_in, end.ports_in));
  several("atomic_slots", "atomic_slots_held", differences(begin.atomic_slots, end.atomic_slots));
  several("locks", "locks_busy", differences(begin.locks, end.locks));
  several("shared_lines", "shared_lines_busy", differences(begin.shared_lines, end.shared_lines));
  const auto worked = differences(begin.threads, end.threads);
  several("cpu_threads", "cpu_worked", worked);
  const auto busiest = static_cast<std::size_t>(std::ranges::max_element(worked) - worked.begin());
  json["cpu_costs_ps"] = {{"post_call", profile.host.post_call.count()},
                          {"post_wqe", profile.host.post_wqe.count()},
                          {"wc_line", profile.host.wc_line.count()},
                          {"doorbell", profile.host.doorbell.count()},
                          {"poll_call", profile.host.poll_call.count()},
                          {"poll_cqe", profile.host.poll_cqe.count()},
                          {"post_recv_wqe", profile.host.post_recv_wqe.count()}};
  json["cpu_memory_most_ps"] = worked.empty() ? 0 : differences(begin.threads_memory, end.threads_memory)[busiest];
  json["cpu_polled_most_ps"] = worked.empty() ? 0 : differences(begin.threads_polling, end.threads_polling)[busiest];
  return json;
}

}  // namespace

NodeCounts node_counts(const SimCluster& cluster, int node) {
  return {cluster.pcie_counts(node),   cluster.nic_counts(node),  cluster.ethernet_counts(node),
          cluster.deepest_queue(node), cluster.usage_times(node), cluster.busy_time(node)};
}

double use_of_units(const NodeCounts& begun, const NodeCounts& ended, Picos time) {
  const UsageTimes &begin = begun.usage, &end = ended.usage;
  const auto requesters = in_use(begin.requester_units, end.requester_units);
  const auto responders = in_use(begin.responder_units, end.responder_units);
  const auto share = [time](std::int64_t used, std::size_t of) {
    return static_cast<double>(used) / (static_cast<double>(of) * static_cast<double>(time.count()));
  };
  return std::max({share(sum(requesters), requesters.size()), share(sum(responders), responders.size()),
                   share(largest(in_use(begin.requester_qps, end.requester_qps)), 1),
                   share(largest(in_use(begin.responder_qps, end.responder_qps)), 1)});
}

CounterReport counter_report(const NodeCounts& begin, const NodeCounts& end, Picos time, const std::string& name,
                             const Profile& profile) {
  CounterReport report{.source = "sim", .node = name, .blind = "", .window_s = to_seconds(time), .events = end.pcie};
  std::vector<std::uint64_t> events;
  each_difference(begin.pcie, end.pcie, [&](const char*, std::uint64_t value) { events.push_back(value); });
  std::size_t i = 0;
  PcieCounts::each(report.events, [&](const char*, std::uint64_t& value) { value = events[i++]; });
  const auto keep = [&report](const char* counter, std::uint64_t value) { report.extra[counter] = value; };
  each_difference(begin.nic, end.nic, keep);
  if (end.ethernet) {
    each_difference(*begin.ethernet, *end.ethernet, keep);
    report.extra["deepest_queue_bytes"] = end.deepest_queue;  // since the run began
  }
  report.extra.update(usage_json(begin.usage, end.usage, profile));
  return report;
}

}  // namespace verbscope
