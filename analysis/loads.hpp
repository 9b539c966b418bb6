// The share of each resource that a point used: from the utilisations that a simulator measured, else from the rate and
// the counted events against what the model says that the resource allows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/cpu_cost.hpp"
#include "analysis/resource.hpp"
#include "analysis/round_trip.hpp"
#include "common/record.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

struct Load {
  Resource resource;
  std::string node;        // "server", "client3"
  double utilisation = 0;  // 1: never idle
  double waited = 0;       // units: the part of it that went by waiting for QP contexts, addresses or RECVs
  double held_up = 0;      // units: the part in which fetching ahead, or earlier atomics, kept work from them
  // Units: the parts of `waited` that were for QP contexts and for addresses.
  double waited_contexts = 0, waited_addresses = 0;
  // The shares of such reads that caches of twice the size would leave.
  double contexts_left = 0, addresses_left = 0;
  // What WQEs that were read again cost: units a part of their own work, the link to the NIC a part of its load.
  double rereading = 0;
  // What is held while the link is crossed: how much of it would be if nothing waited for the link, and the part of
  // that in which the link carries it. Not known where it is 0.
  double held_idle = 0, crossing = 0;
  // Links to the NIC: the parts that were for QP contexts and for addresses that were read again.
  double contexts_read = 0, addresses_read = 0;
  // What would not be there if it were the limit: of CPU and shared line, what takes no longer when there is more to do
  // at a time; of the link to the NIC, WQEs that are read again because they wait to be sent.
  double elastic = 0;
};

// The load of the resource on one side; null when the resource is not among them.
const Load* find_load(const std::vector<Load>& loads, Resource resource);

// The same load as the part of it that the resource itself must work.
inline double own_work(const Load& load) {
  return load.utilisation - load.waited - load.held_up;
}

// A resource that is held while something else is waited for is full because of that as often as by itself.
bool held_only(Resource resource);

struct Loads {
  bool measured = false;  // busy times of a simulator; else inferred from the rate, the model and what was counted
  std::vector<Load> server;
  std::vector<Load> peers;  // for each resource the load of the busiest client
  // Only from busy times: how evenly the load lies.
  double requester_units_used = 0, responder_units_used = 0;  // share of the units that did anything
  double atomic_slot_mean = 0;                                // load of a mean slot
  double cpu_threads = 0;
  CpuCosts cpu_costs;
  RoundTrip trip;
  // Cache lines of WQEs that adapters read again, an operation, and the share of the WQEs outstanding that has room.
  double wqes_reread = 0;
  double wqes_fit = 1;
  // The share of those read again that a cache of twice the size would still have to read again.
  double rereads_left = 0;
  // The share of the WQEs that may wait for responses which has room, where that is known; above 1 there is room for
  // more.
  double waiting_wqes_fit = std::numeric_limits<double>::infinity();
};

// The loads that are known of a record that is ok. `prediction` is the record's, null when it has none.
Loads resource_loads(const Record& record, const Prediction* prediction);

// The cache lines of WQEs that adapters read again for an operation.
double wqes_reread_per_op(const Record& record);

// More of it for an operation than this is no accident of the window.
constexpr double kRereadCounts = 0.02;

// The prediction of a record; none when it has none. Throws Error with the point's name when it is broken.
std::optional<Prediction> prediction_of(const Record& record);

}  // namespace verbscope
