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
constexpr std::array<Name, 19> kNames{{
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
    {Resource::driver_lock, "driver_lock", "a lock of the driver that threads take in turn"},
    {Resource::shared_line, "shared_line", "a cache line that threads add to in turn"},
    {Resource::atomic_slot, "atomic_slot", "PCIe round trip under one lock of the atomic unit"},
    {Resource::dma_reads, "dma_reads", "DMA reads in flight"},
    {Resource::wqe_fetch, "wqe_fetch", "fetching WQEs ahead"},
    {Resource::qp_context_cache, "qp_context_cache", "thrashing of the cache of QP contexts"},
    {Resource::translation_cache, "translation_cache", "thrashing of the cache of address translations"},
    {Resource::wqe_cache, "wqe_cache", "thrashing of the cache of WQEs"},
    {Resource::outstanding, "outstanding", "latency: operations outstanding"},
}};

const Name& name_of(Resource resource) {
  return kNames[static_cast<std::size_t>(resource)];
}

// The part of a server's work on answers that it does once a batch: the post's call and doorbell, the add to the
// counter.
constexpr double kPerBatch = 0.6;

// The bytes of a cache line on the link to the NIC, with its completion's header.
constexpr double kLineRead = 64 + 22;

// The least that a round trip takes on an idle machine: a READ takes about 2 us on each of the adapters of Kalia et
// al., ATC 2016, and an atomic is no quicker; a WRITE, for which nothing is read over PCIe there, takes less.
constexpr double kRoundTripUs = 1.5;
// So does an echo of two unreliable messages: both ways are one trip.
constexpr double kReadTrip = 2 / kRoundTripUs;
// What is complete when it has been sent takes about this part of it.
constexpr double kSentOnly = 0.3;
// A round trip takes at most so many times as long while nothing is full. Assumed.
constexpr double kLoadedTrip = 3;
// A share of dropped messages above this is no accident of the window.
constexpr double kDroppedCounts = 0.02;

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
    const auto add = [&](Resource resource, double utilisation) {
      out.push_back({.resource = resource, .node = report_.node, .utilisation = utilisation});
    };
    add(Resource::mmio, share("mmio_busy_ps"));
    add(Resource::pcie_to_nic, share("pcie_to_nic_busy_ps"));
    if (const auto bytes = static_cast<double>(report_.events.bytes_to_nic); bytes > 0) {
      const double line = out.back().utilisation * kLineRead / bytes;
      out.back().contexts_read = count("qp_context_read_lines") * line;
      out.back().addresses_read = count("translation_misses") * line;
      out.back().elastic = count("wqe_cache_reread_lines") * line;
    }
    set_misses(out.back());
    add(Resource::pcie_to_host, share("pcie_to_host_busy_ps"));
    add(Resource::dma_reads, share_each("read_tags_held_ps", "read_tags"));
    add(Resource::qp_context_cache, share_each("qp_context_reads_held_ps", "qp_context_reads"));
    set_misses(out.back());
    add_units(out, "requester", Resource::requester_units, Resource::requester_unit);
    add_units(out, "responder", Resource::responder_units, Resource::responder_unit);
    add(Resource::cpu, share("cpu_worked_most_ps"));
    out.back().elastic = share("cpu_polled_most_ps");
    add(Resource::driver_lock, std::min(1.0, share("locks_busy_most_ps")));  // the last to have it keeps it beyond
    add(Resource::shared_line, share("shared_lines_busy_most_ps"));
    add(Resource::wire_out, share("wire_out_busy_most_ps"));
    add(Resource::wire_in, share("wire_in_busy_most_ps"));
    add(Resource::atomic_slot, share("atomic_slots_held_most_ps"));
    return out;
  }

 private:
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

  // A unit waits for QP contexts, addresses and RECVs, each of which is a read over PCIe: by how often each was missed.
  void divide_waits(Load& load) const {
    const bool responder = load.resource == Resource::responder_units || load.resource == Resource::responder_unit;
    const double contexts = count("qp_context_misses"), addresses = count("translation_misses");
    const double all = contexts + addresses + (responder ? count("recv_waits") : 0);
    if (all <= 0) return;
    set_misses(load);
    load.waited_contexts = load.waited * contexts / all;
    load.waited_addresses = load.waited * addresses / all;
  }

  void set_misses(Load& load) const {
    const auto missed = [&](const char* misses, const char* hits) {
      return count(misses) > 0 ? count(misses) / (count(misses) + count(hits)) : 0;
    };
    load.context_misses = missed("qp_context_misses", "qp_context_hits");
    load.address_misses = missed("translation_misses", "translation_hits");
  }

  const CounterReport& report_;
  double window_ps_;
};

// The operations that a machine that posts keeps outstanding, and the round trips that one takes on an idle machine;
// none where that follows from no option.
struct UnderWay {
  double operations = 0;
  double machines = 1;
  double trips = 1;
  double burst = 1;      // the share of them that a QP posts at once
  bool returns = false;  // READs or atomics: WQEs wait for a response
  bool full = false;     // the adapter keeps no more of them under way on a QP, whatever the options
};
UnderWay under_way(const Record& record) {
  const auto option = [&](const char* name) { return number_at(record.config, name).value_or(0); };
  const std::string& name = record.benchmark;
  if (name == "verb_latency" || name == "write_visibility") return {};
  UnderWay out;
  // A window of the thread's, over all of its QPs.
  const bool ring = name == "all_to_all" || text_at(record.config, "wait") == "oldest";
  out.returns = name == "read_rate" || name == "atomic_rate" || name == "kv_atomic" ||
                text_at(record.config, "verb") == "read" || text_at(record.config, "design") == "atomic";
  const bool clients_post = name == "atomic_rate" || name == "kv_atomic" || name == "sequencer" ||
                            text_at(record.config, "direction") == "in";
  if (clients_post) out.machines = std::max(1.0, option("clients"));
  double each = option("window") > 0 ? option("window") : option("tx_depth");
  if (out.returns && !ring) {
    out.full = each > most_reads(record);
    each = std::min(each, most_reads(record));
  }
  if (name == "sequencer") {
    out.operations = option("outstanding") * option("client_threads");
    out.trips = out.returns ? 1 : 1.5;
  } else if (name == "echo_rate") {  // the threads of clients ask, as many as there are QPs for them
    out.operations = option("window") * threads_of_clients(record);
    out.trips = kReadTrip;
  } else if (name == "kv_atomic") {
    out.operations = each * option("qp") * option("client_threads");
    out.trips = 1 + 2 * option("put_percent") / 100;
  } else {
    // Connected QPs of the server are divided among the clients; over UD each client has as many of its own.
    const double machines = text_at(record.config, "connection") == "UD" ? 1 : out.machines;
    out.operations = each * option("threads") * (ring ? 1 : option("qp")) / machines;
    if (text_at(record.config, "connection") != "RC") out.trips = kSentOnly;
    out.burst = std::min(1.0, std::max(1.0, option("post_list")) / std::max(1.0, each));
  }
  if (out.returns) out.trips *= kReadTrip;
  return out;
}

// A WQE of a READ or an atomic.
constexpr double kReadWqe = 64;

// What a cache of WQEs of twice the size would leave of those that are read again. That of WQEs that wait for a
// response throws out the oldest: it has room for all, or for none in time.
void set_rereads(const Record& record, const UnderWay& most, Loads& loads) {
  double hits = 0, misses = 0, bytes = 0;
  for (const CounterReport& report : record.counters) {
    hits += number_at(report.extra, "wqe_cache_hits").value_or(0);
    misses += number_at(report.extra, "wqe_cache_misses").value_or(0);
    bytes = std::max(bytes, number_at(report.extra, "sent_wqe_cache_bytes").value_or(0));
  }
  loads.wqes_reread = wqes_reread_per_op(record);
  if (most.returns && bytes > 0 && most.operations > 0) loads.waiting_wqes_fit = bytes / (most.operations * kReadWqe);
  if (misses <= 0) return;
  loads.wqes_fit = hits / (hits + misses);
  double left = std::max(0.0, 1 - 2 * loads.wqes_fit) / (1 - loads.wqes_fit);
  if (std::isfinite(loads.waiting_wqes_fit)) {
    loads.wqes_fit = loads.waiting_wqes_fit;
    left = loads.wqes_fit < 0.5 ? 1 : 0;
  }
  loads.rereads_left = left;
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

// Messages that find no RECV are dropped: who sends them is fast enough, and those who receive would have had time for
// others.
void drop_unreceived(const Record& record, Loads& loads) {
  double dropped = 0, received = 0;
  for (const CounterReport& report : record.counters) {
    if (report.node != "server") continue;
    dropped = number_at(report.extra, "dropped_no_recv").value_or(0);
    received = number_at(report.extra, "messages_received").value_or(0);
  }
  if (record.benchmark != "recv_rate" || dropped <= kDroppedCounts * received) return;
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
      const auto used = [&times](const std::string& name) {
        return times.count(name + "_units") > 0 ? times.count(name + "_units_used") / times.count(name + "_units") : 0;
      };
      loads.requester_units_used = used("requester");
      loads.responder_units_used = used("responder");
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
      loads.server.push_back({.resource = resource, .node = "server", .utilisation = load});
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

double most_reads(const Record& record) {
  constexpr double kOfMellanox = 16;
  return number_at(record.config, "outs").value_or(kOfMellanox);
}

double threads_of_clients(const Record& record) {
  double threads = 0;
  for (const Json& client : record.result.value("clients", Json::array())) {
    threads += static_cast<double>(client.value("result", Json::object()).value("threads", Json::array()).size());
  }
  return threads;
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
    const UnderWay most = under_way(record);
    set_rereads(record, most, loads);
    drop_other_flow(record, loads);
    drop_unreceived(record, loads);
    for (std::vector<Load>* side : {&loads.server, &loads.peers}) {
      for (Load& load : *side) load.in_turn = text_at(record.config, "order") != "random";
    }
    if (most.operations > 0) {
      const double rate = number_at(record.result, "rate_mops").value_or(0) / most.machines;
      loads.reads_are_full = most.full;
      loads.round_trip = rate * kRoundTripUs * most.trips / most.operations;
      loads.most_latency = kLoadedTrip * (loads.round_trip + most.burst);
    }
  }
  // Queues of the null device accept everything at once: what is left is the program that posts.
  if (record.environment.value("fabric", "") == "null") {
    loads.server = {{.resource = Resource::cpu, .node = "server", .utilisation = 1}};
  }
  return loads;
}

std::optional<Prediction> prediction_of(const Record& record) {
  if (!record.prediction.is_object()) return std::nullopt;
  return prediction_from_json(record.prediction, fmt::format("point {}: key \"prediction\"", point_id(record)));
}

}  // namespace verbscope
