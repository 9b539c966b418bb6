// The cost of an operation to the core that posts it, relative to another: the model counts stores, but a call, a
// doorbell and a write-combined line each cost more than their stores.
#pragma once

#include "common/json.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// Nanoseconds of the steps of posting and polling on a host. The values that stand here are those of
// configs/clusters/cib.json, `host`: calibrated on the single-core figures of Kalia et al., USENIX ATC 2016, or assumed
// there.
struct CpuCosts {
  double post_call = 10;
  double post_wqe = 26.2;
  double wc_line = 27;
  double doorbell = 40;
  double poll_call = 15;
  double poll_cqe = 10;
  double post_recv_wqe = 4;
};

// Those of a simulated node, from the `extra` of its counters; those above where nobody knows.
CpuCosts cpu_costs(const Json& extra);

// Nanoseconds of one operation of the model's role; use ratios of two operations only.
double cpu_cost_ns(const Prediction& prediction, const CpuCosts& costs);

}  // namespace verbscope
