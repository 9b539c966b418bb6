#include "analysis/loads.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/busy_times.hpp"
#include "analysis/points.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {
namespace {

// The part of a server's work on answers that it does once a batch: the post's call and doorbell, the add to the
// counter.
constexpr double kPerBatch = 0.6;

// A share of dropped messages above this is no accident of the window.
constexpr double kDroppedCounts = 0.02;

// A WQE of a READ or an atomic.
constexpr double kReadWqe = 64;

// The share of its misses that a cache of twice the size keeps which throws out entries at random, when all that is in
// it stays as long as it waits: of a queue x times as large as the cache h = exp(-(1 - h) x) are still there in their
// turn.
double left_in_a_queue(double missed) {
  if (missed >= 1) return 1;
  const double larger = -std::log(1 - missed) / missed / 2;
  double found = larger <= 1 ? 1 : 0;
  for (int i = 0; i < 100; ++i) found = std::exp(-(1 - found) * larger);
  return (1 - found) / missed;
}

// What a cache of WQEs of twice the size would leave of those that are read again. That of WQEs that wait for a
// response may throw out the oldest: it has room for all, or for none in time.
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

// What a program does for all that it finds in a pass takes as long for one as for a whole batch.
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

// Where both sides ask, how fast the other one posts its own requests says nothing about the rate of this one. Nor does
// it hold up who sends over UC or UD when a program receives too slowly: its adapter drops what has no RECV.
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

// Messages that find no RECV are dropped, or are sent into the buffers of the network faster than they are received:
// who sends them is fast enough. Those who receive would have had time for others than the dropped ones.
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

// Pages that are read for the first time are missed whatever the size of the cache.
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

// The resource of a bound of the model; useful DMA bandwidth is a bound of the link to the NIC.
Resource bounded_resource(const std::string& bound) {
  for (const ResourceFacts& each : all_resources()) {
    if (each.key == bound) return each.resource;
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
        // As many WQEs wait for a response, however fast all is.
        if (load.resource == Resource::pcie_to_nic && !loads.trip.returns) load.elastic = load.rereading;
      }
    }
  }
  // Queues of the null device accept everything at once: what is left is the program that posts.
  // A benchmark of the host alone has nothing but the program.
  if (const std::string fabric = record.environment.value("fabric", ""); fabric == "null" || fabric == "host") {
    loads.server = {{.resource = Resource::cpu, .node = "server", .utilisation = 1}};
  }
  return loads;
}

std::optional<Prediction> prediction_of(const Record& record) {
  // A model that names itself is of no verbs.
  if (!record.prediction.is_object() || record.prediction.contains("model")) return std::nullopt;
  return prediction_from_json(record.prediction, fmt::format("point {}: key \"prediction\"", point_id(record)));
}

}  // namespace verbscope
