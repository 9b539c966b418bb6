#include "microbench/run/sim_usage.hpp"

#include <algorithm>
#include <numeric>

namespace verbscope {
namespace {

std::vector<std::int64_t> differences(const std::vector<Picos>& begin, const std::vector<Picos>& end) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < end.size(); ++i) out.push_back((end[i] - begin[i]).count());
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

void add_units(Json& json, const std::string& name, const std::vector<UnitTime>& begin,
               const std::vector<UnitTime>& end) {
  const auto busy = differences(member(begin, &UnitTime::busy), member(end, &UnitTime::busy));
  const auto waited = differences(member(begin, &UnitTime::waited), member(end, &UnitTime::waited));
  std::vector<std::int64_t> both;
  for (std::size_t i = 0; i < busy.size(); ++i) both.push_back(busy[i] + waited[i]);
  json[name + "_units"] = busy.size();
  json[name + "_units_used"] = std::ranges::count_if(busy, [](std::int64_t time) { return time > 0; });
  json[name + "_busy_ps"] = sum(busy);
  json[name + "_waited_ps"] = sum(waited);
  json[name + "_busiest_unit_ps"] = largest(both);
}

}  // namespace

Json usage_json(const UsageTimes& begin, const UsageTimes& end, const Profile& profile) {
  Json json{{"pcie_to_nic_busy_ps", (end.pcie_to_nic - begin.pcie_to_nic).count()},
            {"pcie_to_host_busy_ps", (end.pcie_to_host - begin.pcie_to_host).count()},
            {"mmio_busy_ps", (end.mmio - begin.mmio).count()},
            {"read_tags", profile.link.read_tags},
            {"read_tags_held_ps", (end.read_tags_held - begin.read_tags_held).count()},
            {"qp_context_reads", profile.nic.qp_context_reads},
            {"qp_context_reads_held_ps", (end.qp_context_reads_held - begin.qp_context_reads_held).count()}};
  add_units(json, "requester", begin.requester_units, end.requester_units);
  add_units(json, "responder", begin.responder_units, end.responder_units);
  const auto several = [&json](const char* count, const std::string& name, const std::vector<std::int64_t>& times) {
    json[count] = times.size();
    json[name + "_ps"] = sum(times);
    json[name + "_most_ps"] = largest(times);
  };
  several("ports", "wire_out_busy", differences(begin.ports_out, end.ports_out));
  several("ports", "wire_in_busy", differences(begin.ports_in, end.ports_in));
  several("atomic_slots", "atomic_slots_held", differences(begin.atomic_slots, end.atomic_slots));
  several("cpu_threads", "cpu_worked", differences(begin.threads, end.threads));
  return json;
}

}  // namespace verbscope
