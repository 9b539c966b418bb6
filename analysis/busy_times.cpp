#include "analysis/busy_times.hpp"

#include <algorithm>

#include "analysis/points.hpp"

namespace verbscope {
namespace {

// Bytes on the link to the NIC for reading one cache line, with the completion's header.
constexpr double kLineRead = 64 + 22;

}  // namespace

BusyTimes::BusyTimes(const CounterReport& report) : report_(report), window_ps_(report.window_s * 1e12) {}

bool BusyTimes::there() const {
  return window_ps_ > 0 && number_at(report_.extra, "pcie_to_nic_busy_ps").has_value();
}

double BusyTimes::count(const std::string& key) const {
  return number_at(report_.extra, key).value_or(0);
}

double BusyTimes::share_each(const std::string& key, const std::string& number) const {
  return count(number) > 0 ? share(key) / count(number) : 0;
}

double BusyTimes::used(const std::string& name) const {
  return count(name + "_units") > 0 ? count(name + "_units_used") / count(name + "_units") : 0;
}

std::vector<Load> BusyTimes::loads() const {
  std::vector<Load> out;
  const auto add = [&](Resource resource) {
    const double busy = share(std::string(facts(resource).counter));
    out.push_back({.resource = resource, .node = report_.node, .utilisation = busy});
  };
  add_links(out);
  add_units(out, "requester", Resource::requester_units, Resource::requester_unit);
  add_units(out, "responder", Resource::responder_units, Resource::responder_unit);
  add(Resource::cpu);
  out.back().elastic = share("cpu_polled_most_ps");
  add(Resource::driver_lock);
  out.back().utilisation = std::min(1.0, out.back().utilisation);  // the last holder may keep it past the interval
  add(Resource::shared_line);
  add(Resource::wire_out);
  add(Resource::wire_in);
  add(Resource::atomic_slot);
  // Each of these counters is a sum over ports or QPs. One port or QP that is held up all the time is a full load.
  for (const Resource each : {Resource::pauses, Resource::switch_buffer, Resource::rate_control}) {
    if (!number_at(report_.extra, std::string(facts(each).counter))) continue;
    add(each);
    out.back().utilisation = std::min(1.0, out.back().utilisation);
  }
  return out;
}

// The two directions of the link, and the resources that are held during transfers.
void BusyTimes::add_links(std::vector<Load>& out) const {
  const double mmio = share("mmio_busy_ps");
  Load to_nic{.resource = Resource::pcie_to_nic, .node = report_.node, .utilisation = share("pcie_to_nic_busy_ps")};
  if (const auto bytes = static_cast<double>(report_.events.bytes_to_nic); bytes > 0) {
    const double line = to_nic.utilisation * kLineRead / bytes;
    to_nic.contexts_read = count("qp_context_read_lines") * line;
    to_nic.addresses_read = count("translation_misses") * line;
    to_nic.rereading = count("wqe_cache_reread_lines") * line;
  }
  set_misses(to_nic);
  Load tags = held(Resource::dma_reads, "read_tags");
  Load contexts = held(Resource::qp_context_cache, "qp_context_reads");
  if (count("read_tags") > 0) tags.crossing = (to_nic.utilisation - mmio) / count("read_tags");
  if (count("qp_context_reads") > 0) contexts.crossing = to_nic.contexts_read / count("qp_context_reads");
  set_misses(contexts);
  out.push_back({.resource = Resource::mmio, .node = report_.node, .utilisation = mmio});
  out.push_back(to_nic);
  out.push_back(
      {.resource = Resource::pcie_to_host, .node = report_.node, .utilisation = share("pcie_to_host_busy_ps")});
  out.push_back(tags);
  out.push_back(contexts);
}

Load BusyTimes::held(Resource resource, const std::string& name) const {
  return {.resource = resource,
          .node = report_.node,
          .utilisation = share_each(name + "_held_ps", name),
          .held_idle = share_each(name + "_held_idle_ps", name)};
}

void BusyTimes::add_units(std::vector<Load>& out, const std::string& name, Resource all, Resource one) const {
  const double waited = share_each(name + "_waited_ps", name + "_units");
  const double held_up = share_each(name + "_held_up_ps", name + "_units");
  const double busy = share_each(name + "_busy_ps", name + "_units");
  out.push_back({.resource = all,
                 .node = report_.node,
                 .utilisation = busy + waited + held_up,
                 .waited = waited,
                 .held_up = held_up,
                 .rereading = share_each(name + "_rereading_ps", name + "_units")});
  out.push_back({.resource = one,
                 .node = report_.node,
                 .utilisation = share(name + "_busiest_unit_ps"),
                 .waited = share(name + "_busiest_waited_ps"),
                 .held_up = share(name + "_busiest_held_up_ps"),
                 .rereading = share(name + "_busiest_rereading_ps")});
  divide_waits(out.back());
  divide_waits(out[out.size() - 2]);
}

// Divides the waiting time by the numbers of misses: QP contexts, addresses and RECVs each cost one read over PCIe.
void BusyTimes::divide_waits(Load& load) const {
  const bool responder = load.resource == Resource::responder_units || load.resource == Resource::responder_unit;
  const double contexts = count("qp_context_misses"), addresses = count("translation_misses");
  const double all = contexts + addresses + (responder ? count("recv_waits") : 0);
  if (all <= 0) return;
  set_misses(load);
  load.waited_contexts = load.waited * contexts / all;
  load.waited_addresses = load.waited * addresses / all;
}

// A simulated adapter counts the misses of a QP context cache of twice the size. The translation cache has random
// replacement, so its hit ratio is the share of all entries that fit.
void BusyTimes::set_misses(Load& load) const {
  const auto at_random = [this](const char* misses, const char* hits) {
    const double missed = count(misses) / std::max(1.0, count(misses) + count(hits));
    return missed > 0 ? std::max(0.0, 2 * missed - 1) / missed : 0;
  };
  load.addresses_left = at_random("translation_misses", "translation_hits");
  load.contexts_left = at_random("qp_context_misses", "qp_context_hits");
  if (const auto twice = number_at(report_.extra, "qp_context_misses_twice"); twice && count("qp_context_misses") > 0)
    load.contexts_left = std::min(1.0, *twice / count("qp_context_misses"));
}

}  // namespace verbscope
