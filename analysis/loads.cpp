#include "analysis/loads.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/busy_times.hpp"
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
    if (!times.there()) continue;
    loads.measured = true;
    const bool server = report.node == "server";
    std::vector<Load> side = times.loads();
    if (first_touches(record, report)) {
      for (Load& load : side) load.waited_addresses = load.addresses_read = 0;
    }
    if (server) {
      loads.requester_units_used = times.used("requester");
      loads.responder_units_used = times.used("responder");
      loads.atomic_slot_mean = times.share_each("atomic_slots_held_ps", "atomic_slots");
      loads.cpu_threads = times.count("cpu_threads");
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
  if (bound != "dma_read") fail("a record's prediction: there is no resource \"{}\"", bound);
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

double wqes_reread_per_op(const Record& record) {
  double per_op = 0;
  for (const CounterReport& report : record.counters) {
    const double ops = operations_in_window(record.result, report);
    if (ops > 0) per_op += number_at(report.extra, "wqe_cache_reread_lines").value_or(0) / ops;
  }
  return per_op;
}

bool held_only(Resource resource) {
  return resource == Resource::atomic_slot || resource == Resource::dma_reads || resource == Resource::qp_context_cache;
}

Loads resource_loads(const Record& record, const Prediction* prediction) {
  Loads loads;
  add_measured(record, loads);
  if (!loads.measured && prediction != nullptr) add_inferred(record, *prediction, loads);
  if (loads.measured) {
    loads.trip = round_trip(record, prediction);
    set_rereads(record, loads);
    drop_other_flow(record, loads);
    drop_unreceived(record, loads);
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
