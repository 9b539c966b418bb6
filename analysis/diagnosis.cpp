#include "analysis/diagnosis.hpp"

#include <algorithm>

namespace verbscope {
namespace {

// A resource that is in use for this share of the time is taken for the limit. Queues in front of the limit of a closed
// loop never run empty, so a real one is far above.
constexpr double kSaturated = 0.9;

// The busiest unit stands for all when the mean of all is nearly as busy.
constexpr double kEvenly = 0.93;

double load_of(const std::vector<Load>& loads, Resource resource) {
  const Load* load = find_load(loads, resource);
  return load == nullptr ? 0 : load->utilisation;
}

// Resources that stand for themselves: MMIO is a part of the link, and the mean of the units is below the busiest.
bool stands_alone(Resource resource) {
  return resource != Resource::mmio && resource != Resource::requester_units && resource != Resource::responder_units;
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

// Calls visit(load, side, whether it is of a peer) for every load that stands alone.
template <class Visit>
void each_load(const Loads& loads, Visit&& visit) {
  for (const bool of_peer : {false, true}) {
    const std::vector<Load>& side = of_peer ? loads.peers : loads.server;
    for (const Load& load : side) {
      if (stands_alone(load.resource)) visit(load, side, of_peer);
    }
  }
}

std::optional<Limit> saturated(const Loads& loads, bool held) {
  std::optional<Limit> limit;
  each_load(loads, [&](const Load& load, const std::vector<Load>& side, bool of_peer) {
    if (held_only(load.resource) != held || load.utilisation < kSaturated) return;
    if (!limit || load.utilisation > limit->load.utilisation + 1e-3) limit = Limit{named(load, side), of_peer};
  });
  return limit;
}

bool same_place(const Load& load, bool of_peer, const Limit& limit) {
  const auto place = [](Resource resource) {
    switch (resource) {
      case Resource::mmio:
        return Resource::pcie_to_nic;
      case Resource::requester_units:
        return Resource::requester_unit;
      case Resource::responder_units:
        return Resource::responder_unit;
      case Resource::pcie_to_nic:
      case Resource::pcie_to_host:
      case Resource::wire_out:
      case Resource::wire_in:
      case Resource::requester_unit:
      case Resource::responder_unit:
      case Resource::cpu:
      case Resource::atomic_slot:
      case Resource::dma_reads:
      case Resource::qp_contexts:
      case Resource::outstanding:
        break;
    }
    return resource;
  };
  return of_peer == limit.of_peer && place(load.resource) == place(limit.load.resource);
}

// Reads in flight and locks are held for longer while the link that they cross is full: what they
// would be without that is not known.
bool held_by_limit(const Load& load, bool of_peer, const Limit& limit) {
  const bool link = limit.load.resource == Resource::mmio || limit.load.resource == Resource::pcie_to_nic ||
                    limit.load.resource == Resource::pcie_to_host;
  return (link && limit.of_peer == of_peer) || load.resource == limit.load.resource;
}

std::string why_undecided(const Loads& loads) {
  if (loads.server.empty()) return "nothing was counted and no model was asked: the evidence does not decide";
  const auto highest = std::ranges::max_element(loads.server, {}, &Load::utilisation);
  return fmt::format(
      "none of the resources that the model knows is near its limit (the highest, {}, at {:.0f} %): what remains are "
      "the adapter's units and caches, the CPU, the peers, and latency, and the evidence does not decide between them",
      words_for(highest->resource), highest->utilisation * 100);
}

}  // namespace

double load_without(const Diagnosis& diagnosis, const Load& load, bool of_peer) {
  const Limit& limit = *diagnosis.binding;
  if (!same_place(load, of_peer, limit)) return load.utilisation;
  const std::vector<Load>& side = of_peer ? diagnosis.loads.peers : diagnosis.loads.server;
  switch (limit.load.resource) {
    case Resource::mmio:  // what else the link carries
      return load.utilisation - load_of(side, Resource::mmio);
    case Resource::requester_unit:  // the same work on all units
      return load_of(side, Resource::requester_units);
    case Resource::responder_unit:
      return load_of(side, Resource::responder_units);
    case Resource::pcie_to_nic:
    case Resource::pcie_to_host:
    case Resource::wire_out:
    case Resource::wire_in:
    case Resource::requester_units:
    case Resource::responder_units:
    case Resource::cpu:
    case Resource::atomic_slot:
    case Resource::dma_reads:
    case Resource::qp_contexts:
    case Resource::outstanding:
      break;
  }
  return 0;
}

double Diagnosis::factor_with(double times) const {
  return lifted_factor > 0 ? std::min(times, lifted_factor) : times;
}

Diagnosis diagnose(const Loads& loads) {
  Diagnosis out;
  out.loads = loads;
  out.binding = saturated(loads, false);
  if (!out.binding) out.binding = saturated(loads, true);
  if (!out.binding && !loads.measured) {
    out.undecided = why_undecided(loads);
    return out;
  }
  // Nothing is ever full: the program waits for its own operations to come back.
  if (!out.binding) out.binding = Limit{Load{Resource::outstanding, "server", 1, 0}, false};
  double highest = 0;
  each_load(loads, [&](const Load& load, const std::vector<Load>& side, bool of_peer) {
    const double left = load_without(out, load, of_peer);
    if (left <= highest || (held_only(load.resource) && held_by_limit(load, of_peer, *out.binding))) return;
    highest = left;
    Load next = load;
    if (same_place(load, of_peer, *out.binding)) {
      if (load.resource == Resource::requester_unit) next.resource = Resource::requester_units;
      if (load.resource == Resource::responder_unit) next.resource = Resource::responder_units;
    } else {
      next = named(load, side);
    }
    next.utilisation = left;
    out.next = Limit{next, of_peer};
  });
  if (highest > 0) out.lifted_factor = out.binding->load.utilisation / highest;
  return out;
}

}  // namespace verbscope
