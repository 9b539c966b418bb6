#include "analysis/doubling.hpp"

#include <algorithm>

namespace verbscope {
namespace {

double link_with_twice(const Load& load, const Doubling& of, const Loads& loads) {
  double left = load.utilisation;
  if (of.has(Resource::qp_context_cache)) left -= load.contexts_read * (1 - load.contexts_left);
  if (of.has(Resource::translation_cache)) left -= load.addresses_read * (1 - load.addresses_left);
  if (of.no_rereads) left -= load.rereading;
  if (!of.no_rereads && of.has(Resource::wqe_cache)) left -= load.rereading * (1 - loads.rereads_left);
  return of.has(Resource::pcie_to_nic) ? left / 2 : left;
}

// For resources that are held during link transfers: on a doubled link a transfer takes half as long, and nothing
// waits.
double held_with_twice(const Load& load, const Doubling& of) {
  double left = load.utilisation;
  if (of.has(Resource::pcie_to_nic)) {
    left = load.held_idle > 0 ? std::min(left, load.held_idle) - load.crossing / 2 : left / 2;
  }
  if (load.resource == Resource::qp_context_cache && of.has(Resource::qp_context_cache))
    return left * load.contexts_left;
  return of.has(load.resource) ? left / 2 : left;
}

double unit_with_twice(const Load& load, const Doubling& of, const Loads& loads) {
  double own = own_work(load);
  if (of.no_rereads) own -= load.rereading;
  if (!of.no_rereads && of.has(Resource::wqe_cache)) own -= load.rereading * (1 - loads.rereads_left);
  double held_up = load.held_up;
  if (of.has(capacity(load.resource))) {
    own /= 2;
    // The time saved by faster work is held up for the same share as before.
    if (load.utilisation > 0) held_up += own * load.held_up / load.utilisation;
  }
  double waited = load.waited;
  if (of.has(Resource::qp_context_cache)) waited -= load.waited_contexts * (1 - load.contexts_left);
  if (of.has(Resource::translation_cache)) waited -= load.waited_addresses * (1 - load.addresses_left);
  // With twice as many WQEs prefetched, the unit works while the second half of them arrives.
  if (of.has(Resource::wqe_fetch)) held_up = std::max(0.0, (held_up - own) / 2);
  if (of.has(Resource::atomic_slot)) held_up /= 2;
  return own + waited + held_up;
}

}  // namespace

bool Doubling::has(Resource resource) const {
  return std::ranges::find(doubled, resource) != doubled.end();
}

double with_twice(const Load& load, const Doubling& of, const Loads& loads) {
  if (load.resource == Resource::pcie_to_nic) return link_with_twice(load, of, loads);
  if (load.resource == Resource::dma_reads || load.resource == Resource::qp_context_cache)
    return held_with_twice(load, of);
  if (is_unit(load.resource)) return unit_with_twice(load, of, loads);
  return of.has(capacity(load.resource)) ? load.utilisation / 2 : load.utilisation;
}

double latency_with_twice(double latency, const Doubling& of, const Loads& loads) {
  const RoundTrip& trip = loads.trip;
  // For operations that wait for locks, only the load of the trip itself is halved.
  if (of.has(Resource::outstanding) && !trip.reads_are_full)
    latency -= (trip.locked * std::min(latency, trip.load) + (1 - trip.locked) * latency) / 2;
  // Re-reads of WQEs delay their QPs. The program waits for that delay, not for the number of outstanding operations.
  if (of.has(Resource::wqe_cache) || of.no_rereads) {
    const double without = std::min(latency, trip.load);
    latency = without + (of.no_rereads ? 0 : loads.rereads_left) * (latency - without);
  }
  if (of.has(Resource::atomic_slot)) latency *= 0.75;  // PCIe is about half of an atomic's round trip
  if (of.has(Resource::requester_unit)) latency *= 1 - trip.requester_share / 2;
  if (of.has(Resource::responder_unit)) latency *= 1 - trip.responder_share / 2;
  return latency;
}

}  // namespace verbscope
