// The cost of an operation to the core that posts it, relative to another: the model counts stores, but a call, a
// doorbell and a write-combined line each cost more than their stores.
#pragma once

#include "pcie_model/predict.hpp"

namespace verbscope {

// Nanoseconds of one operation of the model's role, on the machine whose single-core rows calibrated the constants; use
// ratios of two operations only.
double cpu_cost_ns(const Prediction& prediction);

}  // namespace verbscope
