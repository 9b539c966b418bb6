#include "analysis/loads.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/points.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {
namespace {

// Share of a server's work on responses that it does once per batch: post call, doorbell, and addition to the counter.
constexpr double kPerBatch = 0.6;

// Shares of dropped messages above this are no measurement noise.
constexpr double kDroppedCounts = 0.02;

// Bytes of the WQE of a READ or an atomic.
constexpr double kReadWqe = 64;

// Bytes on the link to the NIC for reading one cache line, with the completion's header.
constexpr double kLineRead = 64 + 22;

// Loads of one simulated node, computed from the busy times in its counters (microbench/run/sim_interval.cpp).
class BusyTimes {
 public:
  // `report` must outlive this object.
  explicit BusyTimes(const CounterReport& report) : report_(report), window_ps_(report.window_s * 1e12) {}

  // True if the report contains busy times.
  bool available() const { return window_ps_ > 0 && number_at(report_.extra, "pcie_to_nic_busy_ps").has_value(); }

  std::vector<Load> loads() const {
    std::vector<Load> out;
    const auto add = [&](Resource resource) {
      const double busy = share(std::string(facts(resource).counter));
      out.push_back({.resource = resource, .node = report_.node, .utilisation = busy});
    };
    add_links(out);
    add_units(out, "requester", Resource::requester_units, Resource::requester_unit);
    add_units(out, "responder", Resource::responder_units, Resource::responder_unit);
    add(Resource::cpu);
    out.back().memory = share("cpu_memory_most_ps");
    out.back().utilisation += out.back().memory;
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

  double count(const std::string& key) const { return number_at(report_.extra, key).value_or(0); }
  // Time under `key` as a share of the measurement interval. share_each: the mean over `number` identical units.
  double share(const std::string& key) const { return count(key) / window_ps_; }
  double share_each(const std::string& key, const std::string& number) const {
    return count(number) > 0 ? share(key) / count(number) : 0;
  }

 private:
  // The two directions of the link, and the resources that are held during transfers.
  void add_links(std::vector<Load>& out) const {
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

  Load held(Resource resource, const std::string& name) const {
    return {.resource = resource,
            .node = report_.node,
            .utilisation = share_each(name + "_held_ps", name),
            .held_idle = share_each(name + "_held_idle_ps", name)};
  }

  void add_units(std::vector<Load>& out, const std::string& name, Resource all, Resource one) const {
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
  void divide_waits(Load& load) const {
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
  void set_misses(Load& load) const {
    const auto at_random = [this](const char* misses, const char* hits) {
      const double missed = count(misses) / std::max(1.0, count(misses) + count(hits));
      return missed > 0 ? std::max(0.0, 2 * missed - 1) / missed : 0;
    };
    load.addresses_left = at_random("translation_misses", "translation_hits");
    load.contexts_left = at_random("qp_context_misses", "qp_context_hits");
    if (const auto twice = number_at(report_.extra, "qp_context_misses_twice"); twice && count("qp_context_misses") > 0)
      load.contexts_left = std::min(1.0, *twice / count("qp_context_misses"));
  }

  const CounterReport& report_;
  double window_ps_;
};

// Share of its misses that a cache of twice the size keeps. The cache has random replacement, and each entry is used
// once, after waiting in a queue. With a queue x times as long as the cache, the hit ratio h is exp(-(1 - h) x).
double left_in_a_queue(double missed) {
  if (missed >= 1) return 1;
  const double larger = -std::log(1 - missed) / missed / 2;
  double found = larger <= 1 ? 1 : 0;
  for (int i = 0; i < 100; ++i) found = std::exp(-(1 - found) * larger);
  return (1 - found) / missed;
}

// Computes the share of re-reads that a WQE cache of twice the size would keep. The cache of WQEs that wait for
// responses may evict the oldest first: either all of them fit, or each is evicted before it is needed.
void set_rereads(const Record& record, Loads& loads) {
  double hits = 0, misses = 0, bytes = 0;
  for (const CounterReport& report : record.counters) {
    hits += number_at(report.extra, "wqe_cache_hits").value_or(0);
    misses += number_at(report.extra, "wqe_cache_misses").value_or(0);
    bytes = std::max(bytes, number_at(report.extra, "sent_wqe_cache_bytes").value_or(0));
  }
  const RoundTrip& trip = loads.trip;
  loads.wqes_reread = wqes_reread_per_op(record);
  if (trip.returns && bytes > 0 && trip.operations > 0) loads.waiting_wqes_fit = bytes / (trip.operations * kReadWqe);
  if (misses <= 0) return;
  loads.wqes_fit = hits / (hits + misses);
  loads.rereads_left = left_in_a_queue(1 - loads.wqes_fit);
  if (std::isfinite(loads.waiting_wqes_fit)) {
    loads.wqes_fit = loads.waiting_wqes_fit;
    loads.rereads_left = loads.wqes_fit < 0.5 ? 1 : 0;
  }
}

// Per-batch work takes as long for one request as for a full batch, so this part of the load shrinks with fuller
// batches.
void share_batches(const Record& record, std::vector<Load>& side) {
  if (!record.config.value("batching", false)) return;
  const auto batches = record.result.find("answers_per_post");
  const double most = number_at(record.config, "max_batch").value_or(1);
  if (batches == record.result.end() || !batches->is_object()) return;
  const auto workers = record.result.find("workers");
  const double full =
      workers != record.result.end() && workers->is_object() ? number_at(*workers, "full_share").value_or(0) : 0;
  const double left = std::clamp(number_at(*batches, "mean").value_or(most) / most, full, 1.0);
  for (Load& load : side) {
    if (load.resource == Resource::shared_line) load.elastic = load.utilisation * (1 - left);
    if (load.resource == Resource::cpu)
      load.elastic = (load.elastic + (load.utilisation - load.elastic) * kPerBatch) * (1 - left);
  }
}

// If both sides send requests, the posting speed of the other side does not affect the rate of this side. On UC and UD
// a slow receiving program does not hold up the senders either: its adapter drops messages that find no RECV.
void drop_other_flow(const Record& record, Loads& loads) {
  const std::string transport = text_at(record.config, "connection");
  if (record.benchmark == "send_rate" && transport != "RC") {
    std::erase_if(loads.peers, [](const Load& load) { return load.resource == Resource::cpu; });
  }
  if (text_at(record.config, "active") != "all") return;
  std::erase_if(text_at(record.config, "direction") == "in" ? loads.server : loads.peers, [](const Load& load) {
    return load.resource == Resource::cpu || load.resource == Resource::requester_unit ||
           load.resource == Resource::requester_units;
  });
}

// Messages without a RECV are dropped, or pile up in the buffers of the network: the senders are fast enough. The
// receivers' load excludes dropped messages, because that time is available for others.
void drop_unreceived(const Record& record, Loads& loads) {
  double sent = 0, dropped = 0, received = 0;
  for (const CounterReport& report : record.counters) {
    if (report.node != "server") {
      sent += number_at(report.extra, "messages_sent").value_or(0) / report.window_s;
      continue;
    }
    dropped = number_at(report.extra, "dropped_no_recv").value_or(0) / report.window_s;
    received = number_at(report.extra, "messages_received").value_or(0) / report.window_s;
  }
  if (record.benchmark != "recv_rate" || std::max(dropped, sent - received) <= kDroppedCounts * received) return;
  loads.peers.clear();
  for (Load& load : loads.server) {
    const bool all_messages = load.resource == Resource::wire_in || load.resource == Resource::responder_unit ||
                              load.resource == Resource::responder_units;
    if (all_messages) load.utilisation *= received / (received + dropped);
  }
}

// True if most translation misses are first accesses to pages, which occur with a cache of any size.
bool first_touches(const Record& record, const CounterReport& report) {
  const double page = text_at(record.config, "pages") == "2m" ? 1 << 21 : 1 << 12;
  const double pages =
      number_at(record.config, "keys").value_or(number_at(record.config, "region_size").value_or(0) / page);
  return 2 * number_at(report.extra, "translation_misses").value_or(0) < pages;
}

void add_measured(const Record& record, Loads& loads) {
  for (const CounterReport& report : record.counters) {
    const BusyTimes times(report);
    if (!times.available()) continue;
    loads.measured = true;
    const bool server = report.node == "server";
    std::vector<Load> side = times.loads();
    if (first_touches(record, report)) {
      for (Load& load : side) load.waited_addresses = load.addresses_read = 0;
    }
    if (server) {
      loads.atomic_slot_mean = times.share_each("atomic_slots_held_ps", "atomic_slots");
      loads.cpu_costs = cpu_costs(report.extra);
      share_batches(record, side);
      loads.server = std::move(side);
      continue;
    }
    for (const Load& load : side) {
      const auto known = std::ranges::find(loads.peers, load.resource, &Load::resource);
      if (known == loads.peers.end()) {
        loads.peers.push_back(load);
      } else if (load.utilisation > known->utilisation) {
        *known = load;
      }
    }
  }
}

// The resource of a model's bound. "dma_read" (useful DMA bandwidth) is a bound of the link to the NIC.
Resource bounded_resource(const std::string& bound) {
  for (const ResourceFacts& each : all_resources()) {
    if (each.key == bound) return each.resource;
  }
  if (bound != "dma_read") fail("a record's prediction: unknown resource \"{}\"", bound);
  return Resource::pcie_to_nic;
}

// Load: rate relative to the model's bound, times counted / modelled events if they were counted.
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
      loads.server.push_back({.resource = resource, .node = "server", .utilisation = load});
    } else {
      known->utilisation = std::max(known->utilisation, load);
    }
  }
}

}  // namespace

const Load* find_load(const std::vector<Load>& loads, Resource resource) {
  const auto found = std::ranges::find(loads, resource, &Load::resource);
  return found == loads.end() ? nullptr : &*found;
}

double load_of(const std::vector<Load>& loads, Resource resource) {
  const Load* load = find_load(loads, resource);
  return load == nullptr ? 0 : load->utilisation;
}

double wqes_reread_per_op(const Record& record) {
  double per_op = 0;
  for (const CounterReport& report : record.counters) {
    const double ops = operations_in_window(record.result, report);
    if (ops > 0) per_op += number_at(report.extra, "wqe_cache_reread_lines").value_or(0) / ops;
  }
  return per_op;
}

bool is_held_while_waiting(Resource resource) {
  return resource == Resource::atomic_slot || resource == Resource::dma_reads || resource == Resource::qp_context_cache;
}

Loads resource_loads(const Record& record, const Prediction* prediction) {
  Loads loads;
  add_measured(record, loads);
  if (const std::optional<Load> leader = leader_load(record); leader && !loads.measured) {
    loads.measured = true;
    loads.server = {*leader};
  }
  if (!loads.measured && prediction != nullptr) add_inferred(record, *prediction, loads);
  if (loads.measured) {
    loads.trip = round_trip(record, prediction);
    set_rereads(record, loads);
    drop_other_flow(record, loads);
    drop_unreceived(record, loads);
    loads.waited_for = waited_for(record);
    if (loads.waited_for == Resource::log_device) loads.waited_share = waited_for_log(record);
    loads.alike = is_rpc(record) && text_at(record.config, "serve") == "all";
    add_workers(record, loads.server);
    if (const Load* in = find_load(loads.server, Resource::wire_in); in != nullptr && waits_in_switch(record)) {
      loads.server.push_back({.resource = Resource::switch_queue, .node = in->node, .utilisation = in->utilisation});
    }
    for (std::vector<Load>* side : {&loads.server, &loads.peers}) {
      for (Load& load : *side) {
        // READs and atomics: the number of WQEs that wait for responses does not depend on the speed, so re-reads
        // remain.
        if (load.resource == Resource::pcie_to_nic && !loads.trip.returns) load.elastic = load.rereading;
      }
    }
  }
  // The null device accepts everything at once, and a host benchmark uses no device: only the program is left.
  if (const std::string fabric = record.environment.value("fabric", ""); fabric == "null" || fabric == "host") {
    loads.server = {{.resource = Resource::cpu, .node = "server", .utilisation = 1}};
  }
  return loads;
}

std::optional<Prediction> prediction_of(const Record& record) {
  // A prediction with the key "model" is not about verbs.
  if (!record.prediction.is_object() || record.prediction.contains("model")) return std::nullopt;
  return prediction_from_json(record.prediction, fmt::format("point {}: key \"prediction\"", point_id(record)));
}

}  // namespace verbscope
