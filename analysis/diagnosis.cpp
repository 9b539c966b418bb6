#include "analysis/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/doubling.hpp"

namespace verbscope {
namespace {

// A resource that is in use for this share of the time is full. Queues in front of the limit of a closed loop never run
// empty. Below it the program waits for its own operations, too.
constexpr double kFull = 0.95;
// Nor is latency more than the options allow beside a resource in use for this share.
constexpr double kNearlyFull = 0.8;
// Where loads are inferred, the limit is a resource at this share of what the model says that it allows.
constexpr double kInferredFull = 0.9;

// What crosses a link that is as full as this waits for it.
constexpr double kLinkFull = 0.9;
// A link that is never idle is the limit, whatever it carries.
constexpr double kAlwaysFull = 0.98;

// Latency and the fullest resource limit a closed loop together; how sharp the knee between them is depends on how
// evenly operations come. This lies between an even flow and one of random arrivals. Where all that a QP has
// outstanding comes at once, it is waited for after the work: the times add up.
constexpr double kKnee = 5;
constexpr double kKneeAtOnce = 1;

// The busiest unit stands for all when the mean of all is nearly as busy.
constexpr double kEvenly = 0.93;

// A part of a load below this is not worth a name, nor is a change that brings less than so much.
constexpr double kPart = 0.1;
// What has less load than this is not asked whether it is the limit.
constexpr double kWorthATry = 0.5;
// Another one is told that brings about half as much, as near as gains can be foretold.
constexpr double kNear = 0.4;
// A limit that brings as much as this by itself is told alone.
constexpr double kClear = 1.3;

double load_of(const std::vector<Load>& loads, Resource resource) {
  const Load* load = find_load(loads, resource);
  return load == nullptr ? 0 : load->utilisation;
}

// Resources that stand for themselves: MMIO is a part of the link.
bool stands_alone(Resource resource) {
  return resource != Resource::mmio;
}

bool is_link(Resource resource) {
  return resource == Resource::mmio || resource == Resource::pcie_to_nic || resource == Resource::pcie_to_host;
}

// The name that fits best: the link to the NIC that is full of MMIO writes; all units, not one of them.
Load named(const Load& load, const std::vector<Load>& side) {
  const auto instead = [&](Resource other, double share) {
    const Load* found = find_load(side, other);
    return found != nullptr && found->utilisation >= share * load.utilisation ? found : nullptr;
  };
  const Load* other = nullptr;
  if (load.resource == Resource::pcie_to_nic) other = instead(Resource::mmio, 0.5);
  if (load.resource == Resource::requester_unit) other = instead(Resource::requester_units, kEvenly);
  if (load.resource == Resource::responder_unit) other = instead(Resource::responder_units, kEvenly);
  Load out = other != nullptr ? *other : load;
  out.utilisation = load.utilisation;
  return out;
}

bool same_place(const Load& load, bool of_peer, const Limit& limit) {
  const auto place = [](Resource resource) {
    return resource == Resource::pcie_to_host || resource == Resource::wire_in ? resource : capacity(resource);
  };
  return of_peer == limit.of_peer && place(load.resource) == place(limit.load.resource);
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

// The fullest resource of a capacity: one of the candidates, or of all loads; of none is known that it is used at all.
Limit fullest_of(const Diagnosis& diagnosis, Resource of) {
  for (const Limit& each : diagnosis.candidates) {
    if (capacity(each.load.resource) == of) return each;
  }
  Limit out{Load{.resource = of, .node = "server"}};
  for (const bool of_peer : {false, true}) {
    for (const Load& load : of_peer ? diagnosis.loads.peers : diagnosis.loads.server) {
      const bool fuller = stands_alone(load.resource) && load.utilisation > out.load.utilisation;
      if (fuller && capacity(load.resource) == of) out = Limit{load, of_peer};
    }
  }
  return out;
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
      candidates_.push_back({Load{.resource = rereads ? Resource::wqe_cache : Resource::outstanding,
                                  .node = "server",
                                  .utilisation = out_.latency}});
    }
    for (Limit& each : candidates_) each.gain = gain({each.load.resource});
  }

  void find() {
    const auto better = [](const Limit& a, const Limit& b) {
      if (std::abs(a.gain - b.gain) > kPart / 2) return a.gain > b.gain;
      return a.load.utilisation > b.load.utilisation + 1e-3;
    };
    std::ranges::stable_sort(candidates_, better);
    if (candidates_.empty()) return;
    out_.candidates = candidates_;
    Limit first = candidates_.front();
    std::optional<Limit> second;
    double both = first.gain;
    for (const Limit& a : candidates_) {
      if (first.gain > 1 + kPart && &a != &candidates_.front()) break;
      for (const Limit& b : candidates_) {
        if (&a == &b) continue;
        if (const double gained = gain({a.load.resource, b.load.resource}); gained > both + kPart / 2) {
          both = gained;
          first = a;
          second = b;
        }
      }
    }
    const bool clear = second && first.gain < kClear && both > (1 + kPart) * first.gain;
    if (!clear) {
      first = candidates_.front();
      second = near(first);
    }
    out_.binding = shown(first, out_.loads);
    if (!second) return;
    out_.second = shown(*second, out_.loads);
    out_.gain_of_both = gain({first.load.resource, second->load.resource});
  }

 private:
  // Another one that is told beside the first, though both together bring little more: it brings more than half as
  // much, or is full as well where a third leaves little to gain.
  std::optional<Limit> near(const Limit& first) const {
    std::optional<Limit> out;
    for (const Limit& each : candidates_) {
      if (&each == &candidates_.front()) continue;
      if (each.gain - 1 > std::max(kPart / 2, (first.gain - 1) * kNear) && (!out || each.gain > out->gain)) out = each;
    }
    if (!out && first.gain < 1 + kPart && candidates_.size() > 1 && candidates_[1].load.utilisation >= kFull)
      out = candidates_[1];
    return out;
  }

  double gain(std::vector<Resource> doubled) const {
    for (Resource& each : doubled) each = capacity(each);
    Doubling of{std::move(doubled)};
    const Diagnosis::Outcome with = outcome(of);
    // WQEs wait for units and are read again, which takes the units more time: if they are fast enough, nothing waits.
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

  // The fullest of each capacity.
  void add(const Limit& limit) {
    for (Limit& known : candidates_) {
      if (capacity(known.load.resource) != capacity(limit.load.resource)) continue;
      if (limit.load.utilisation > known.load.utilisation + 1e-3) known = limit;
      return;
    }
    candidates_.push_back(limit);
  }
  void add_part(const Load& load, bool of_peer, Resource resource, double part) {
    if (part >= kPart) add(Limit{Load{.resource = resource, .node = load.node, .utilisation = part}, of_peer});
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
    add(Limit{load, of_peer});
    return load.utilisation;
  }

  Diagnosis& out_;
  std::vector<Limit> candidates_;
};

double fuller_direction(const std::vector<Load>& side) {
  return std::max(load_of(side, Resource::pcie_to_nic), load_of(side, Resource::pcie_to_host));
}

// Whether the load can bind at all. Reads in flight and locks are held for longer while the link that they cross is
// full: what they would be without that may not be known.
bool can_bind(const Load& load, const std::vector<Load>& side) {
  if (!stands_alone(load.resource)) return false;
  return !held_only(load.resource) || load.held_idle > 0 || fuller_direction(side) < kFull;
}

// The load without what would not be there if nothing else were full: a CPU that has little to do asks more often than
// it must; a unit that waits for what a full link brings is not busy, nor is one that waits for a full lock.
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

void find_next(Diagnosis& out) {
  double highest = 0;
  const Diagnosis::Outcome next = out.outcome(
      [&](const Load& load, bool of_peer) {
        const bool held =
            held_only(load.resource) && is_link(out.binding->load.resource) && of_peer == out.binding->of_peer;
        const double left = held ? 0 : load_without(out, load, of_peer);
        highest = std::max(highest, left);
        return left;
      },
      0);
  if (highest <= 0) return;
  out.next = next.fullest;
  const bool unit =
      is_unit(out.binding->load.resource) && same_place(next.fullest.load, next.fullest.of_peer, *out.binding);
  if (unit && next.fullest.load.resource == Resource::requester_unit)
    out.next->load.resource = Resource::requester_units;
  if (unit && next.fullest.load.resource == Resource::responder_unit)
    out.next->load.resource = Resource::responder_units;
  if (!unit) out.next->load = named(next.fullest.load, next.fullest.of_peer ? out.loads.peers : out.loads.server);
  out.next->load.utilisation = highest;
  out.lifted_factor = next.factor;
}

}  // namespace

// Calls visit(load, of_peer) with each load that bears on the rate.
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
    out.fullest = Limit{load, of_peer};
  });
  const double then = with_latency(highest, latency_after, knee);
  if (then > 0) out.factor = with_latency(before, latency, knee) / then;
  if (latency_after > highest)
    out.fullest = Limit{Load{.resource = Resource::outstanding, .node = "server", .utilisation = 1}};
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

double load_without(const Diagnosis& diagnosis, const Load& load, bool of_peer) {
  const Limit& limit = *diagnosis.binding;
  const Resource lifted = limit.load.resource;
  const bool unit = is_unit(load.resource) && of_peer == limit.of_peer;
  if (unit && (lifted == Resource::wqe_fetch || lifted == Resource::atomic_slot))
    return load.utilisation - load.held_up;
  if (unit && lifted == Resource::wqe_cache) return load.utilisation - load.rereading;
  if (unit && lifted == Resource::qp_context_cache) return load.utilisation - load.waited_contexts;
  if (unit && lifted == Resource::translation_cache) return load.utilisation - load.waited_addresses;
  if (!same_place(load, of_peer, limit)) return load.utilisation;
  const std::vector<Load>& side = of_peer ? diagnosis.loads.peers : diagnosis.loads.server;
  if (lifted == Resource::mmio) return load.utilisation - load_of(side, Resource::mmio);  // what else the link carries
  if (lifted == Resource::requester_unit)
    return load_of(side, Resource::requester_units);  // the same work on all units
  if (lifted == Resource::responder_unit) return load_of(side, Resource::responder_units);
  return 0;
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
  if (out.binding) find_next(out);
  return out;
}

void name_limits(Diagnosis& diagnosis, const GainOfTwice& first, const std::optional<GainOfTwice>& second,
                 double gain_of_both) {
  const auto limit = [&diagnosis](const GainOfTwice& each) {
    Limit out = shown(fullest_of(diagnosis, each.resource), diagnosis.loads);
    out.gain = each.gain;
    return out;
  };
  diagnosis.binding = limit(first);
  diagnosis.second = second ? std::optional(limit(*second)) : std::nullopt;
  diagnosis.gain_of_both = gain_of_both;
  diagnosis.next.reset();
  diagnosis.lifted_factor = 0;
  find_next(diagnosis);
}

}  // namespace verbscope
