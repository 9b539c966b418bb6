// CPU cost of an operation for the core that posts it, for comparing operations. The model counts stores, but a call, a
// doorbell and a write-combined line each cost more than their stores.
#pragma once

#include "common/json.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// Cost in nanoseconds of each step of posting and polling. The defaults are those of configs/clusters/cib.json, `host`:
// calibrated on the single-core figures of Kalia et al., USENIX ATC 2016, or assumed there.
struct CpuCosts {
  double post_call = 10;
  double post_wqe = 26.2;
  double wc_line = 27;
  double doorbell = 40;
  double poll_call = 15;
  double poll_cqe = 10;
  double post_recv_wqe = 4;
};

// The costs of a simulated node, from the `extra` of its counters. Missing ones have the defaults above.
CpuCosts cpu_costs(const Json& extra);

// Nanoseconds per operation of the model's role. Use only the ratio of two operations.
double cpu_cost_ns(const Prediction& prediction, const CpuCosts& costs);

}  // namespace verbscope
