#include "analysis/loads.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/points.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {
namespace {

struct Name {
  Resource resource;
  std::string_view key, words;
};
constexpr std::array<Name, 14> kNames{{
    {Resource::mmio, "mmio", "MMIO bandwidth"},
    {Resource::pcie_to_nic, "pcie_to_nic", "PCIe bandwidth to the NIC (DMA reads)"},
    {Resource::pcie_to_host, "pcie_to_host", "PCIe bandwidth to the host (DMA writes)"},
    {Resource::wire_out, "wire_out", "wire bandwidth, outbound"},
    {Resource::wire_in, "wire_in", "wire bandwidth, inbound"},
    {Resource::requester_units, "requester_units", "the NIC's requester units"},
    {Resource::requester_unit, "requester_unit", "one QP's requester unit"},
    {Resource::responder_units, "responder_units", "the NIC's responder units"},
    {Resource::responder_unit, "responder_unit", "one QP's responder unit"},
    {Resource::cpu, "cpu", "CPU"},
    {Resource::atomic_slot, "atomic_slot", "PCIe round trip under one lock of the atomic unit"},
    {Resource::dma_reads, "dma_reads", "DMA reads in flight"},
    {Resource::qp_contexts, "qp_contexts", "thrashing of the cache of QP contexts"},
    {Resource::outstanding, "outstanding", "latency: operations outstanding"},
}};

const Name& name_of(Resource resource) {
  return kNames[static_cast<std::size_t>(resource)];
}

// The shares of one node's window, from the busy times of the simulator (microbench/run/sim_usage).
class BusyTimes {
 public:
  explicit BusyTimes(const CounterReport& report) : report_(report), window_ps_(report.window_s * 1e12) {}

  bool there() const { return window_ps_ > 0 && number_at(report_.extra, "pcie_to_nic_busy_ps").has_value(); }
  double count(const std::string& key) const { return number_at(report_.extra, key).value_or(0); }
  double share(const std::string& key) const { return count(key) / window_ps_; }
  double share_each(const std::string& key, const std::string& number) const {
    return count(number) > 0 ? share(key) / count(number) : 0;
  }

  std::vector<Load> loads() const {
    std::vector<Load> out;
    const auto add = [&](Resource resource, double utilisation, double waited = 0) {
      out.push_back({resource, report_.node, utilisation, waited});
    };
    add(Resource::mmio, share("mmio_busy_ps"));
    add(Resource::pcie_to_nic, share("pcie_to_nic_busy_ps"));
    add(Resource::pcie_to_host, share("pcie_to_host_busy_ps"));
    add(Resource::dma_reads, share_each("read_tags_held_ps", "read_tags"));
    add(Resource::qp_contexts, share_each("qp_context_reads_held_ps", "qp_context_reads"));
    add_units(out, "requester", Resource::requester_units, Resource::requester_unit);
    add_units(out, "responder", Resource::responder_units, Resource::responder_unit);
    add(Resource::cpu, share("cpu_worked_most_ps"));
    add(Resource::wire_out, share("wire_out_busy_most_ps"));
    add(Resource::wire_in, share("wire_in_busy_most_ps"));
    add(Resource::atomic_slot, share("atomic_slots_held_most_ps"));
    return out;
  }

 private:
  void add_units(std::vector<Load>& out, const std::string& name, Resource all, Resource one) const {
    const double waited = share_each(name + "_waited_ps", name + "_units");
    const double both = share_each(name + "_busy_ps", name + "_units") + waited;
    const double busiest = share(name + "_busiest_unit_ps");
    out.push_back({all, report_.node, both, waited});
    out.push_back({one, report_.node, busiest, both > 0 ? busiest * waited / both : 0});
  }

  const CounterReport& report_;
  double window_ps_;
};

void add_measured(const Record& record, Loads& loads) {
  for (const CounterReport& report : record.counters) {
    const BusyTimes times(report);
    if (!times.there()) continue;
    loads.measured = true;
    const bool server = report.node == "server";
    if (server) {
      const auto used = [&times](const std::string& name) {
        return times.count(name + "_units") > 0 ? times.count(name + "_units_used") / times.count(name + "_units") : 0;
      };
      loads.requester_units_used = used("requester");
      loads.responder_units_used = used("responder");
      loads.atomic_slot_mean = times.share_each("atomic_slots_held_ps", "atomic_slots");
      loads.cpu_threads = times.count("cpu_threads");
      loads.server = times.loads();
      continue;
    }
    for (const Load& load : times.loads()) {
      const auto known = std::ranges::find(loads.peers, load.resource, &Load::resource);
      if (known == loads.peers.end()) {
        loads.peers.push_back(load);
      } else if (load.utilisation > known->utilisation) {
        *known = load;
      }
    }
  }
}

// The resource of a bound of the model; useful DMA bandwidth is a bound of the link to the NIC.
Resource bounded_resource(const std::string& bound) {
  for (const Name& name : kNames) {
    if (name.key == bound) return name.resource;
  }
  if (bound != "dma_read") fail("a record's prediction: there is no resource \"{}\"", bound);
  return Resource::pcie_to_nic;
}

// The rate over what the model allows; where events were counted, times what was counted over what was modelled.
void add_inferred(const Record& record, const Prediction& prediction, Loads& loads) {
  const double rate = number_at(record.result, "rate_mops").value_or(0);
  const std::optional<PciePerOp> counted = events_per_op(record);
  const auto extra = [&](double PciePerOp::*event) {
    const bool both = counted && std::isfinite((*counted).*event) && prediction.pcie.*event > 0;
    return both ? (*counted).*event / prediction.pcie.*event : 1;
  };
  for (const RateBound& bound : prediction.bounds) {
    const Resource resource = bounded_resource(bound.resource);
    double load = bound.mops > 0 ? rate / bound.mops : 0;
    if (resource == Resource::mmio) load *= extra(&PciePerOp::mmio_wc_lines);
    if (resource == Resource::pcie_to_nic) load *= extra(&PciePerOp::bytes_to_nic);
    if (resource == Resource::pcie_to_host) load *= extra(&PciePerOp::bytes_to_host);
    const auto known = std::ranges::find(loads.server, resource, &Load::resource);
    if (known == loads.server.end()) {
      loads.server.push_back({resource, "server", load, 0});
    } else {
      known->utilisation = std::max(known->utilisation, load);
    }
  }
}

}  // namespace

std::string_view to_string(Resource resource) {
  return name_of(resource).key;
}
std::string_view words_for(Resource resource) {
  return name_of(resource).words;
}

const Load* find_load(const std::vector<Load>& loads, Resource resource) {
  const auto found = std::ranges::find(loads, resource, &Load::resource);
  return found == loads.end() ? nullptr : &*found;
}

bool held_only(Resource resource) {
  return resource == Resource::atomic_slot || resource == Resource::dma_reads || resource == Resource::qp_contexts;
}

Loads resource_loads(const Record& record, const Prediction* prediction) {
  Loads loads;
  add_measured(record, loads);
  if (!loads.measured && prediction != nullptr) add_inferred(record, *prediction, loads);
  // Queues of the null device accept everything at once: what is left is the program that posts.
  if (record.environment.value("fabric", "") == "null") loads.server = {{Resource::cpu, "server", 1, 0}};
  return loads;
}

std::optional<Prediction> prediction_of(const Record& record) {
  if (!record.prediction.is_object()) return std::nullopt;
  return prediction_from_json(record.prediction, fmt::format("point {}: key \"prediction\"", point_id(record)));
}

}  // namespace verbscope
