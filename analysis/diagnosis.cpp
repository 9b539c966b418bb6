#include "analysis/diagnosis.hpp"

#include <algorithm>
#include <cmath>

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
// evenly operations come. This lies between an even flow and one of random arrivals.
constexpr double kKnee = 5;

// The busiest unit stands for all when the mean of all is nearly as busy.
constexpr double kEvenly = 0.93;

// A part of a load below this is not worth a name, nor is a change that brings less than so much.
constexpr double kPart = 0.1;
// What has less load than this is not asked whether it is the limit.
constexpr double kWorthATry = 0.5;
// A limit that brings as much as this by itself is told alone.
constexpr double kClear = 1.3;

double load_of(const std::vector<Load>& loads, Resource resource) {
  const Load* load = find_load(loads, resource);
  return load == nullptr ? 0 : load->utilisation;
}

// Resources that stand for themselves: MMIO is a part of the link, and the mean of the requester's units is below the
// busiest. Any free unit of the responder serves a QP, one at a time.
bool stands_alone(Resource resource) {
  return resource != Resource::mmio && resource != Resource::requester_units;
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

// What has one capacity: who doubles it for one doubles it for all of these.
Resource capacity(Resource resource) {
  switch (resource) {
    case Resource::mmio:
    case Resource::pcie_to_nic:
    case Resource::pcie_to_host:
      return Resource::pcie_to_nic;
    case Resource::wire_out:
    case Resource::wire_in:
      return Resource::wire_out;
    case Resource::requester_units:
    case Resource::requester_unit:
      return Resource::requester_unit;
    case Resource::responder_units:
    case Resource::responder_unit:
      return Resource::responder_unit;
    case Resource::cpu:
    case Resource::driver_lock:
    case Resource::shared_line:
    case Resource::atomic_slot:
    case Resource::dma_reads:
    case Resource::wqe_fetch:
    case Resource::qp_context_cache:
    case Resource::translation_cache:
    case Resource::wqe_cache:
    case Resource::outstanding:
      break;
  }
  return resource;
}

bool is_unit(Resource resource) {
  return capacity(resource) == Resource::requester_unit || capacity(resource) == Resource::responder_unit;
}

// The share of its misses that a cache of twice the size keeps, when it missed this share of lookups and throws out
// entries at random. At random a lookup finds what it wants by the share of all that has room; in turn it must have
// survived the misses of a whole round: of a working set x times as large as the cache, h = exp(-(1 - h) x) are found.
double misses_left(double missed, bool in_turn) {
  if (missed <= 0) return 0;
  if (!in_turn || missed >= 1) return std::max(0.0, 2 * missed - 1) / missed;
  const double larger = -std::log(1 - missed) / missed / 2;
  double found = larger <= 1 ? 1 : 0;
  for (int i = 0; i < 100; ++i) found = std::exp(-(1 - found) * larger);
  return (1 - found) / missed;
}

// The load when all of these have twice the capacity, in every machine.
double with_twice(const Load& load, const std::vector<Resource>& doubled, const Loads& loads) {
  const auto has = [&](Resource resource) { return std::ranges::find(doubled, resource) != doubled.end(); };
  if (load.resource == Resource::pcie_to_nic) {
    double left = load.utilisation;
    if (has(Resource::qp_context_cache))
      left -= load.contexts_read * (1 - misses_left(load.context_misses, load.in_turn));
    if (has(Resource::wqe_cache)) left -= load.elastic * (1 - loads.rereads_left);
    if (has(Resource::translation_cache)) left -= load.addresses_read * (1 - misses_left(load.address_misses, false));
    return has(Resource::pcie_to_nic) ? left / 2 : left;
  }
  if (load.resource == Resource::qp_context_cache && has(Resource::qp_context_cache)) {
    return load.utilisation * misses_left(load.context_misses, load.in_turn);
  }
  if (load.resource == Resource::dma_reads && has(Resource::pcie_to_nic)) return load.utilisation / 2;
  if (!is_unit(load.resource)) return has(capacity(load.resource)) ? load.utilisation / 2 : load.utilisation;
  double own = own_work(load);
  if (has(Resource::wqe_cache)) own -= load.rereading * (1 - loads.rereads_left);
  double held_up = load.held_up;
  if (has(capacity(load.resource))) {
    own /= 2;
    // A unit that is held up for a share of its time is so for as much of the time that faster work saves.
    if (load.utilisation > 0) held_up += own * load.held_up / load.utilisation;
  }
  double waited = load.waited;
  if (has(Resource::qp_context_cache))
    waited -= load.waited_contexts * (1 - misses_left(load.context_misses, load.in_turn));
  if (has(Resource::translation_cache)) waited -= load.waited_addresses * (1 - misses_left(load.address_misses, false));
  // Twice as many WQEs on their way: the unit works while the second half of them comes.
  if (has(Resource::wqe_fetch)) held_up = std::max(0.0, (held_up - own) / 2);
  if (has(Resource::atomic_slot)) held_up /= 2;
  return own + waited + held_up;
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

double with_latency(double highest, double latency) {
  return std::pow(std::pow(highest, kKnee) + std::pow(latency, kKnee), 1 / kKnee);
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
      second.reset();
      // Two that are full are both told, even where a third leaves little to gain.
      if (first.gain < 1 + kPart && candidates_.size() > 1 && candidates_[1].load.utilisation >= kFull) {
        second = candidates_[1];
      }
    }
    out_.binding = shown(first);
    if (!second) return;
    out_.second = shown(*second);
    out_.gain_of_both = gain({first.load.resource, second->load.resource});
  }

 private:
  double gain(std::vector<Resource> doubled) const {
    for (Resource& each : doubled) each = capacity(each);
    const auto has = [&](Resource resource) { return std::ranges::find(doubled, resource) != doubled.end(); };
    double latency = out_.latency;
    if (has(Resource::outstanding) && !out_.loads.reads_are_full) latency /= 2;
    // WQEs that are read again hold up their QPs: that, not how many are outstanding, is what the program waits for.
    if (has(Resource::wqe_cache)) {
      const double without = std::min(latency, out_.loads.round_trip);
      latency = without + out_.loads.rereads_left * (latency - without);
    }
    if (has(Resource::atomic_slot)) latency *= 0.75;  // about half of an atomic's round trip is that over PCIe
    return out_.outcome([&](const Load& load, bool) { return with_twice(load, doubled, out_.loads); }, latency).factor;
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
    add(Limit{load, of_peer});
    return load.utilisation;
  }

  Limit shown(Limit limit) const {
    limit.load = named(limit.load, limit.of_peer ? out_.loads.peers : out_.loads.server);
    return limit;
  }

  Diagnosis& out_;
  std::vector<Limit> candidates_;
};

// Whether the load can bind at all. Reads in flight and locks are held for longer while the link that they cross is
// full: what they would be without that is not known.
bool can_bind(const Load& load, const std::vector<Load>& side) {
  if (!stands_alone(load.resource)) return false;
  return !held_only(load.resource) ||
         std::max(load_of(side, Resource::pcie_to_nic), load_of(side, Resource::pcie_to_host)) < kFull;
}

// The load without what would not be there if nothing else were full: a CPU that has little to do asks more often than
// it must; a unit that waits for what a full link brings is not busy, nor is one that waits for a full lock.
Load bearing(Load load, const std::vector<Load>& side) {
  if (!is_link(load.resource) || load.utilisation < kAlwaysFull) load.utilisation -= load.elastic;
  if (!is_unit(load.resource)) return load;
  const bool link_full =
      std::max(load_of(side, Resource::pcie_to_nic), load_of(side, Resource::pcie_to_host)) >= kLinkFull;
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

Diagnosis::Outcome Diagnosis::outcome(const After& after, double latency_after) const {
  double before = 0, highest = 0;
  Outcome out;
  const auto each = [&](auto&& visit) {
    for (const bool of_peer : {false, true}) {
      const std::vector<Load>& side = of_peer ? loads.peers : loads.server;
      for (const Load& load : side) {
        if (can_bind(load, side)) visit(load, of_peer);
      }
    }
  };
  each([&](const Load& whole, bool of_peer) {
    const Load load = bearing(whole, of_peer ? loads.peers : loads.server);
    before = std::max(before, load.utilisation);
    const double left = after(load, of_peer);
    if (left <= highest) return;
    highest = left;
    out.fullest = Limit{load, of_peer};
  });
  const double then = with_latency(highest, latency_after);
  if (then > 0) out.factor = with_latency(before, latency) / then;
  if (latency_after > highest)
    out.fullest = Limit{Load{.resource = Resource::outstanding, .node = "server", .utilisation = 1}};
  return out;
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
  out.latency = loads.round_trip;
  if (loads.measured && highest < kFull) {
    const double rest = std::pow(1 - std::pow(highest, kKnee), 1 / kKnee);
    out.latency = std::max(out.latency, highest < kNearlyFull ? rest : std::min(rest, loads.most_latency));
  }
  Search(out).find();
  if (out.binding) find_next(out);
  return out;
}

}  // namespace verbscope
