#include "analysis/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/doubling.hpp"

namespace verbscope {
namespace {

// A resource with at least this utilisation is full: in a closed loop the queue in front of the limit never runs empty.
// Below it the program also waits for its own operations.
constexpr double kFull = 0.95;
// At or above this utilisation, the latency load is at most RoundTrip::most_latency.
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

// If all units have on average at least this share of the busiest unit's load, "all units" are named instead of one.
constexpr double kEvenly = 0.93;

// Parts of a load below this are ignored.
constexpr double kPart = 0.1;
// Loads below this are not considered as limits.
constexpr double kWorthATry = 0.5;

double load_of(const std::vector<Load>& loads, Resource resource) {
  const Load* load = find_load(loads, resource);
  return load == nullptr ? 0 : load->utilisation;
}

// False for MMIO, which is a part of the link to the NIC.
bool stands_alone(Resource resource) {
  return resource != Resource::mmio;
}

bool is_link(Resource resource) {
  return resource == Resource::mmio || resource == Resource::pcie_to_nic || resource == Resource::pcie_to_host;
}

// The most fitting name: MMIO if it causes half of the link's load; all units instead of one if they are evenly busy.
Load named(const Load& load, const std::vector<Load>& side) {
  const auto instead = [&](Resource other, double share) {
    const Load* found = find_load(side, other);
    return found != nullptr && found->utilisation >= share * load.utilisation ? found : nullptr;
  };
  const Load* other = nullptr;
  if (load.resource == Resource::pcie_to_nic) other = instead(Resource::mmio, 0.5);
  if (load.resource == Resource::requester_unit) other = instead(Resource::requester_units, kEvenly);
  if (load.resource == Resource::responder_unit) other = instead(Resource::responder_units, kEvenly);
  return other != nullptr ? *other : load;
}

std::string why_undecided(const Loads& loads) {
  if (loads.server.empty()) return "nothing was counted and no model was asked: the evidence does not decide";
  const auto highest = std::ranges::max_element(loads.server, {}, &Load::utilisation);
  return fmt::format(
      "none of the resources that the model knows is near its limit (the highest, {}, at {:.0f} %): what remains are "
      "the adapter's units and caches, the CPU, the peers, and latency, and the evidence does not decide between them",
      words_for(highest->resource), highest->utilisation * 100);
}

Limit shown(Limit limit, const Loads& loads) {
  limit.load = named(limit.load, limit.of_peer ? loads.peers : loads.server);
  return limit;
}

double with_latency(double highest, double latency, double knee) {
  return std::pow(std::pow(highest, knee) + std::pow(latency, knee), 1 / knee);
}

class Search {
 public:
  explicit Search(Diagnosis& out) : out_(out) {
    out_.outcome([this](const Load& load, bool of_peer) { return add(load, of_peer); }, 0);
    if (out_.latency > 0) {
      const bool rereads = out_.loads.wqes_reread > kRereadCounts;
      add({.load = Load{.resource = rereads ? Resource::wqe_cache : Resource::outstanding,
                        .node = "server",
                        .utilisation = out_.latency}});
    }
    for (Limit& each : candidates_) each.gain = gain({each.load.resource});
  }

  void find() {
    std::ranges::stable_sort(candidates_, std::greater{}, &Limit::gain);
    // Gains that differ by less than their uncertainty: the fuller resource goes first.
    const auto alike = std::ranges::find_if(
        candidates_, [this](const Limit& each) { return each.gain < candidates_.front().gain - kPart / 2; });
    std::stable_sort(candidates_.begin(), alike,
                     [](const Limit& a, const Limit& b) { return a.load.utilisation > b.load.utilisation; });
    out_.candidates = candidates_;
    const auto first = std::ranges::find_if(candidates_, [](const Limit& each) { return each.gain >= kWorthwhile; });
    if (first != candidates_.end()) {
      out_.limits = {shown(*first, out_.loads)};
      out_.gain_of_all = first->gain;
    } else {
      find_pair();
    }
    if (out_.limits.empty())
      out_.undecided = "by the loads no resource, nor two together, lift the rate by 3 % or more";
  }

 private:
  void find_pair() {
    for (auto a = candidates_.begin(); a != candidates_.end(); ++a) {
      for (auto b = std::next(a); b != candidates_.end(); ++b) {
        const double both = gain({a->load.resource, b->load.resource});
        if (both < kWorthwhile || both <= out_.gain_of_all) continue;
        out_.gain_of_all = both;
        out_.limits = {shown(*a, out_.loads), shown(*b, out_.loads)};
      }
    }
  }

  double gain(std::vector<Resource> doubled) const {
    for (Resource& each : doubled) each = capacity(each);
    Doubling of{std::move(doubled)};
    const Diagnosis::Outcome with = outcome(of);
    // WQEs that wait for a unit are re-read, which takes unit time. If faster units end the waiting, the re-reads end,
    // too.
    if (!of.has(Resource::requester_unit) || out_.loads.trip.returns || out_.loads.wqes_reread <= kRereadCounts)
      return with.factor;
    of.no_rereads = true;
    const Diagnosis::Outcome without = outcome(of);
    return capacity(without.fullest.load.resource) == Resource::requester_unit ? with.factor : without.factor;
  }
  Diagnosis::Outcome outcome(const Doubling& of) const {
    return out_.outcome([&](const Load& load, bool) { return with_twice(load, of, out_.loads); },
                        latency_with_twice(out_.latency, of, out_.loads));
  }

  // Keeps the fullest load for each capacity.
  void add(const Limit& limit) {
    for (Limit& known : candidates_) {
      if (capacity(known.load.resource) != capacity(limit.load.resource)) continue;
      if (limit.load.utilisation > known.load.utilisation + 1e-3) known = limit;
      return;
    }
    candidates_.push_back(limit);
  }
  void add_part(const Load& load, bool of_peer, Resource resource, double part) {
    if (part >= kPart)
      add(Limit{.load = Load{.resource = resource, .node = load.node, .utilisation = part}, .of_peer = of_peer});
  }

  double add(const Load& load, bool of_peer) {
    if (load.utilisation < kWorthATry) return load.utilisation;
    if (is_unit(load.resource)) {
      const bool requester = load.resource == Resource::requester_unit;
      add_part(load, of_peer, requester ? Resource::wqe_fetch : Resource::atomic_slot, load.held_up);
      add_part(load, of_peer, Resource::wqe_cache, load.rereading);
      add_part(load, of_peer, Resource::qp_context_cache, load.waited_contexts);
      add_part(load, of_peer, Resource::translation_cache, load.waited_addresses);
      if (own_work(load) < kPart) return load.utilisation;
    }
    add_part(load, of_peer, Resource::pcie_to_nic, load.crossing);
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
bool can_bind(const Load& load, const std::vector<Load>& side) {
  if (!stands_alone(load.resource)) return false;
  return !held_only(load.resource) || load.held_idle > 0 || fuller_direction(side) < kFull;
}

// The load without the parts that would vanish if nothing else were full: excess polling by a CPU that has little to
// do, and time that a unit waits for a full link or a full lock.
Load bearing(Load load, const std::vector<Load>& side) {
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
void Diagnosis::each_bearing(Visit&& visit) const {
  for (const bool of_peer : {false, true}) {
    const std::vector<Load>& side = of_peer ? loads.peers : loads.server;
    for (const Load& load : side) {
      if (can_bind(load, side)) visit(bearing(load, side), of_peer);
    }
  }
}

Diagnosis::Outcome Diagnosis::outcome(const After& after, double latency_after) const {
  double before = 0, highest = 0;
  Outcome out;
  each_bearing([&](const Load& load, bool of_peer) {
    before = std::max(before, load.utilisation);
    const double left = after(load, of_peer);
    if (left <= highest) return;
    highest = left;
    out.fullest = Limit{.load = load, .of_peer = of_peer};
  });
  const double then = with_latency(highest, latency_after, knee);
  if (then > 0) out.factor = with_latency(before, latency, knee) / then;
  if (latency_after > highest)
    out.fullest = Limit{.load = Load{.resource = Resource::outstanding, .node = "server", .utilisation = 1}};
  return out;
}

double Diagnosis::rest_of_time() const {
  double taken = 0;
  each_bearing([&](const Load& load, bool) {
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
    out.undecided = why_undecided(loads);
    return out;
  }
  out.latency = loads.trip.load;
  if (loads.measured && highest < kFull) {
    out.knee = kKnee + (kKneeAtOnce - kKnee) * loads.trip.burst;
    const double rest = out.rest_of_time();
    out.latency = std::max(out.latency, highest < kNearlyFull ? rest : std::min(rest, loads.trip.most_latency));
  }
  Search(out).find();
  return out;
}

Limit fullest_of(const Diagnosis& diagnosis, Resource of) {
  Limit out{.load = Load{.resource = of, .node = "server"}};
  for (const Limit& each : diagnosis.candidates) {
    if (capacity(each.load.resource) == of) out = each;
  }
  if (out.load.utilisation > 0) return shown(out, diagnosis.loads);
  for (const bool of_peer : {false, true}) {
    for (const Load& load : of_peer ? diagnosis.loads.peers : diagnosis.loads.server) {
      const bool fuller = stands_alone(load.resource) && load.utilisation > out.load.utilisation;
      if (fuller && capacity(load.resource) == of) out = Limit{.load = load, .of_peer = of_peer};
    }
  }
  return shown(out, diagnosis.loads);
}

}  // namespace verbscope
