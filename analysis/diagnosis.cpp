#include "analysis/diagnosis.hpp"

#include <algorithm>
#include <cmath>

namespace verbscope {
namespace {

// Resources whose capacity is doubled in every machine.
struct Doubling {
  std::vector<Resource> doubled;  // each by its capacity()
  // The requester units become fast enough that no WQE waits for them and is read again.
  bool no_rereads = false;

  bool has(Resource resource) const { return std::ranges::find(doubled, resource) != doubled.end(); }
};

double link_load_after(const Load& load, const Doubling& doubling, const Loads& loads) {
  double left = load.utilisation;
  if (doubling.has(Resource::qp_context_cache)) left -= load.contexts_read * (1 - load.contexts_left);
  if (doubling.has(Resource::translation_cache)) left -= load.addresses_read * (1 - load.addresses_left);
  if (doubling.no_rereads) left -= load.rereading;
  if (!doubling.no_rereads && doubling.has(Resource::wqe_cache)) left -= load.rereading * (1 - loads.rereads_left);
  return doubling.has(Resource::pcie_to_nic) ? left / 2 : left;
}

// For resources that are held during link transfers: on a doubled link a transfer takes half as long, and nothing
// waits.
double held_load_after(const Load& load, const Doubling& doubling) {
  double left = load.utilisation;
  if (doubling.has(Resource::pcie_to_nic)) {
    left = load.held_idle > 0 ? std::min(left, load.held_idle) - load.crossing / 2 : left / 2;
  }
  if (load.resource == Resource::qp_context_cache && doubling.has(Resource::qp_context_cache))
    return left * load.contexts_left;
  return doubling.has(load.resource) ? left / 2 : left;
}

double unit_load_after(const Load& load, const Doubling& doubling, const Loads& loads) {
  double own = own_work(load);
  if (doubling.no_rereads) own -= load.rereading;
  if (!doubling.no_rereads && doubling.has(Resource::wqe_cache)) own -= load.rereading * (1 - loads.rereads_left);
  double held_up = load.held_up;
  if (doubling.has(capacity(load.resource))) {
    own /= 2;
    // The time saved by faster work is held up for the same share as before.
    if (load.utilisation > 0) held_up += own * load.held_up / load.utilisation;
  }
  double waited = load.waited;
  if (doubling.has(Resource::qp_context_cache)) waited -= load.waited_contexts * (1 - load.contexts_left);
  if (doubling.has(Resource::translation_cache)) waited -= load.waited_addresses * (1 - load.addresses_left);
  // With twice as many WQEs prefetched, the unit works while the second half of them arrives.
  if (doubling.has(Resource::wqe_fetch)) held_up = std::max(0.0, (held_up - own) / 2);
  if (doubling.has(Resource::atomic_slot)) held_up /= 2;
  return own + waited + held_up;
}

// The load after the doubling. Precondition: `load` affects the rate.
double load_after(const Load& load, const Doubling& doubling, const Loads& loads) {
  if (load.resource == Resource::pcie_to_nic) return link_load_after(load, doubling, loads);
  if (load.resource == Resource::dma_reads || load.resource == Resource::qp_context_cache)
    return held_load_after(load, doubling);
  if (is_unit(load.resource)) return unit_load_after(load, doubling, loads);
  if (load.resource == Resource::cpu) {
    const double work = load.utilisation - load.memory;
    return (doubling.has(Resource::cpu) ? work / 2 : work) +
           (doubling.has(Resource::dram) ? load.memory / 2 : load.memory);
  }
  return doubling.has(capacity(load.resource)) ? load.utilisation / 2 : load.utilisation;
}

// The latency load after the doubling; `latency` is the one before.
double latency_after(double latency, const Doubling& doubling, const Loads& loads) {
  const RoundTrip& trip = loads.trip;
  // For operations that wait for locks, only the load of the trip itself is halved.
  const bool more = doubling.has(Resource::outstanding) || doubling.has(loads.waited_for);
  const double part = doubling.has(Resource::outstanding) ? 1 : loads.waited_share;
  if (more && !trip.reads_are_full)
    latency -= part * (trip.locked * std::min(latency, trip.load) + (1 - trip.locked) * latency) / 2;
  // Re-reads of WQEs delay their QPs. The program waits for that delay, not for the number of outstanding operations.
  if (doubling.has(Resource::wqe_cache) || doubling.no_rereads) {
    const double without = std::min(latency, trip.load);
    latency = without + (doubling.no_rereads ? 0 : loads.rereads_left) * (latency - without);
  }
  if (doubling.has(Resource::atomic_slot)) latency *= 0.75;  // PCIe is about half of an atomic's round trip
  if (doubling.has(Resource::requester_unit)) latency *= 1 - trip.requester_share / 2;
  if (doubling.has(Resource::responder_unit)) latency *= 1 - trip.responder_share / 2;
  return latency;
}

// A resource with at least this utilisation is full: in a closed loop the queue in front of the limit never runs empty.
// Below it the program also waits for its own operations.
constexpr double kFull = 0.95;
// At or above this utilisation, the latency load is at most RoundTrip::max_latency.
constexpr double kNearlyFull = 0.8;
// Inferred loads: a resource limits the rate from this share of what the model allows.
constexpr double kInferredFull = 0.9;

// From this load on, transfers wait for the link, and atomics for a lock.
constexpr double kLinkFull = 0.9;
// A link with at least this load is the limit, whatever it carries.
constexpr double kAlwaysFull = 0.98;

// Latency and the fullest resource limit a closed loop together. The sharpness of the knee between them depends on how
// evenly operations arrive; kKnee lies between constant and random arrivals. If a QP posts all of its outstanding
// operations at once, the program waits for them after its own work, so the times add up (kKneeAtOnce).
constexpr double kKnee = 5;
constexpr double kKneeAtOnce = 1;

// If all units have on average at least this share of the busiest unit's load, "all units" are named instead of
// one.
constexpr double kEvenShare = 0.93;

// Parts of a load below this are ignored.
constexpr double kMinPart = 0.1;
// Loads below this are not considered as limits.
constexpr double kMinCandidateLoad = 0.5;

// False for other names: MMIO is a part of the link to the NIC, the switch's queue is in front of a port.
bool is_own_resource(Resource resource) {
  return resource != Resource::mmio && resource != Resource::switch_queue;
}

bool is_link(Resource resource) {
  return resource == Resource::mmio || resource == Resource::pcie_to_nic || resource == Resource::pcie_to_host;
}

// The most fitting name: MMIO if it causes half of the link's load; all units instead of one if they are evenly busy.
Load best_named(const Load& load, const std::vector<Load>& side) {
  const auto instead = [&](Resource other, double share) {
    const Load* found = find_load(side, other);
    return found != nullptr && found->utilisation >= share * load.utilisation ? found : nullptr;
  };
  const Load* other = nullptr;
  if (load.resource == Resource::pcie_to_nic) other = instead(Resource::mmio, 0.5);
  if (load.resource == Resource::wire_in) other = instead(Resource::switch_queue, 1);
  if (load.resource == Resource::requester_unit) other = instead(Resource::requester_units, kEvenShare);
  if (load.resource == Resource::responder_unit) other = instead(Resource::responder_units, kEvenShare);
  return other != nullptr ? *other : load;
}

std::string undecided_reason(const Loads& loads) {
  if (loads.server.empty()) return "the record has neither counters nor a prediction";
  const auto highest = std::ranges::max_element(loads.server, {}, &Load::utilisation);
  return fmt::format(
      "every resource that the model covers is below its limit (highest: {}, {:.0f} %). The limit is among the "
      "adapter's "
      "units and caches, the CPU, the peers and latency; the record does not show which",
      words_for(highest->resource), highest->utilisation * 100);
}

Limit with_best_name(Limit limit, const Loads& loads) {
  limit.load = best_named(limit.load, limit.of_peer ? loads.peers : loads.server);
  return limit;
}

double combined_load(double highest, double latency, double knee) {
  return std::pow(std::pow(highest, knee) + std::pow(latency, knee), 1 / knee);
}

class Search {
 public:
  explicit Search(Diagnosis& out) : out_(out) {
    out_.outcome([this](const Load& load, bool of_peer) { return add(load, of_peer); }, 0);
    if (out_.latency > 0) {
      const bool rereads = out_.loads.wqes_reread > kRereadCounts;
      add({.load = Load{.resource = rereads ? Resource::wqe_cache : out_.loads.waited_for,
                        .node = "server",
                        .utilisation = out_.latency}});
    }
    for (Limit& each : candidates_) each.gain = gain({each.load.resource});
  }

  void find() {
    std::ranges::stable_sort(candidates_, std::greater{}, &Limit::gain);
    // Gains that differ by less than their uncertainty: the fuller resource goes first.
    const auto alike = std::ranges::find_if(
        candidates_, [this](const Limit& each) { return each.gain < candidates_.front().gain - kMinPart / 2; });
    std::stable_sort(candidates_.begin(), alike,
                     [](const Limit& a, const Limit& b) { return a.load.utilisation > b.load.utilisation; });
    out_.candidates = candidates_;
    const auto first = std::ranges::find_if(candidates_, [](const Limit& each) { return each.gain >= kWorthwhile; });
    if (first != candidates_.end()) {
      out_.limits = {with_best_name(*first, out_.loads)};
      out_.gain_of_all = first->gain;
    } else {
      find_pair();
    }
    if (out_.limits.empty())
      out_.undecided = "doubling one resource, or two together, raises the rate by less than 3 %";
  }

 private:
  void find_pair() {
    for (auto a = candidates_.begin(); a != candidates_.end(); ++a) {
      for (auto b = std::next(a); b != candidates_.end(); ++b) {
        const double both = gain({a->load.resource, b->load.resource});
        if (both < kWorthwhile || both <= out_.gain_of_all) continue;
        out_.gain_of_all = both;
        out_.limits = {with_best_name(*a, out_.loads), with_best_name(*b, out_.loads)};
      }
    }
  }

  double gain(std::vector<Resource> doubled) const {
    for (Resource& each : doubled) each = capacity(each);
    Doubling doubling{std::move(doubled)};
    const Diagnosis::Outcome with = outcome(doubling);
    // WQEs that wait for a unit are re-read, which takes unit time. If faster units end the waiting, the re-reads end,
    // too.
    if (!doubling.has(Resource::requester_unit) || out_.loads.trip.returns || out_.loads.wqes_reread <= kRereadCounts)
      return with.factor;
    doubling.no_rereads = true;
    const Diagnosis::Outcome without = outcome(doubling);
    return capacity(without.fullest.load.resource) == Resource::requester_unit ? with.factor : without.factor;
  }
  Diagnosis::Outcome outcome(const Doubling& doubling) const {
    return out_.outcome([&](const Load& load, bool) { return load_after(load, doubling, out_.loads); },
                        latency_after(out_.latency, doubling, out_.loads));
  }

  // Keeps the fullest load for each capacity.
  void add(const Limit& limit) {
    for (Limit& known : candidates_) {
      if (capacity(known.load.resource) != capacity(limit.load.resource)) continue;
      const double more = limit.of_peer && out_.loads.alike ? kMinPart / 2 : 1e-3;
      if (limit.load.utilisation > known.load.utilisation + more) known = limit;
      return;
    }
    candidates_.push_back(limit);
  }
  void add_part(const Load& load, bool of_peer, Resource resource, double part) {
    if (part >= kMinPart)
      add(Limit{.load = Load{.resource = resource, .node = load.node, .utilisation = part}, .of_peer = of_peer});
  }

  double add(const Load& load, bool of_peer) {
    if (load.utilisation < kMinCandidateLoad) return load.utilisation;
    if (is_unit(load.resource)) {
      const bool requester = load.resource == Resource::requester_unit;
      add_part(load, of_peer, requester ? Resource::wqe_fetch : Resource::atomic_slot, load.held_up);
      add_part(load, of_peer, Resource::wqe_cache, load.rereading);
      add_part(load, of_peer, Resource::qp_context_cache, load.waited_contexts);
      add_part(load, of_peer, Resource::translation_cache, load.waited_addresses);
      if (own_work(load) < kMinPart) return load.utilisation;
    }
    add_part(load, of_peer, Resource::pcie_to_nic, load.crossing);
    add_part(load, of_peer, Resource::dram, load.memory);
    add(Limit{.load = load, .of_peer = of_peer});
    return load.utilisation;
  }

  Diagnosis& out_;
  std::vector<Limit> candidates_;
};

double fuller_direction(const std::vector<Load>& side) {
  return std::max(load_of(side, Resource::pcie_to_nic), load_of(side, Resource::pcie_to_host));
}

// False for loads that cannot be the limit. Reads in flight and locks are held longer while the link that they use is
// full; their load without that wait may be unknown.
bool can_limit(const Load& load, const std::vector<Load>& side) {
  if (!is_own_resource(load.resource)) return false;
  return !is_held_while_waiting(load.resource) || load.held_idle > 0 || fuller_direction(side) < kFull;
}

// The load without the parts that would vanish if nothing else were full: excess polling by a CPU that has little to
// do, and time that a unit waits for a full link or a full lock.
Load limiting_part(Load load, const std::vector<Load>& side) {
  if (!is_link(load.resource) || load.utilisation < kAlwaysFull) {
    load.utilisation -= load.elastic;
    if (is_link(load.resource) && load.elastic > 0) load.rereading = 0;
  }
  const bool link_full = fuller_direction(side) >= kLinkFull;
  if (link_full && load.held_idle > 0) load.utilisation = std::min(load.utilisation, load.held_idle);
  if (!is_unit(load.resource)) return load;
  const bool lock_full = load_of(side, Resource::atomic_slot) >= kLinkFull;
  if (link_full || lock_full) {
    load.utilisation -= load.held_up;
    load.held_up = 0;
  }
  if (link_full) {
    load.utilisation -= load.waited;
    load.waited = load.waited_contexts = load.waited_addresses = 0;
  }
  return load;
}

}  // namespace

// Calls visit(load, of_peer) for each load that can limit the rate.
template <class Visit>
void Diagnosis::for_each_limiting_load(Visit&& visit) const {
  for (const bool of_peer : {false, true}) {
    const std::vector<Load>& side = of_peer ? loads.peers : loads.server;
    for (const Load& load : side) {
      if (can_limit(load, side)) visit(limiting_part(load, side), of_peer);
    }
  }
}

Diagnosis::Outcome Diagnosis::outcome(const After& after, double latency_after) const {
  double before = 0, highest = 0;
  Outcome out;
  for_each_limiting_load([&](const Load& load, bool of_peer) {
    before = std::max(before, load.utilisation);
    const double left = after(load, of_peer);
    if (left <= highest) return;
    highest = left;
    out.fullest = Limit{.load = load, .of_peer = of_peer};
  });
  const double then = combined_load(highest, latency_after, knee);
  if (then > 0) out.factor = combined_load(before, latency, knee) / then;
  if (latency_after > highest)
    out.fullest = Limit{.load = Load{.resource = Resource::outstanding, .node = "server", .utilisation = 1}};
  return out;
}

double Diagnosis::remaining_latency() const {
  double taken = 0;
  for_each_limiting_load([&](const Load& load, bool) {
    const double part = std::pow(std::max(0.0, load.utilisation), knee);
    taken = knee < kKnee ? std::max(taken, part) : taken + part;
  });
  return std::pow(std::max(0.0, 1 - taken), 1 / knee);
}

Diagnosis diagnose(const Loads& loads) {
  Diagnosis out;
  out.loads = loads;
  const Diagnosis::Outcome now = out.outcome([](const Load& load, bool) { return load.utilisation; }, 0);
  const double highest = now.fullest.load.utilisation;
  if (!loads.measured && highest < kInferredFull) {
    out.undecided = undecided_reason(loads);
    return out;
  }
  out.latency = loads.trip.load;
  if (loads.measured && highest < kFull) {
    out.knee = kKnee + (kKneeAtOnce - kKnee) * loads.trip.burst;
    const double rest = out.remaining_latency();
    out.latency = std::max(out.latency, highest < kNearlyFull ? rest : std::min(rest, loads.trip.max_latency));
  }
  Search(out).find();
  return out;
}

Limit fullest_limit(const Diagnosis& diagnosis, Resource wanted) {
  Limit out{.load = Load{.resource = wanted, .node = "server"}};
  for (const Limit& each : diagnosis.candidates) {
    if (capacity(each.load.resource) == wanted) out = each;
  }
  if (out.load.utilisation > 0) return with_best_name(out, diagnosis.loads);
  for (const bool of_peer : {false, true}) {
    for (const Load& load : of_peer ? diagnosis.loads.peers : diagnosis.loads.server) {
      const bool fuller = is_own_resource(load.resource) && load.utilisation > out.load.utilisation;
      if (fuller && capacity(load.resource) == wanted) out = Limit{.load = load, .of_peer = of_peer};
    }
  }
  return with_best_name(out, diagnosis.loads);
}

}  // namespace verbscope
