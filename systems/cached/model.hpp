// The closed-form model of the cached store's server.
#pragma once

#include "pcie_model/predict.hpp"
#include "systems/cached/ends.hpp"

namespace verbscope::cached {

// The share of the GETs of kept keys that are confirmed, in steady state, where all of `clients` ask alike: those whose
// client has done the last operation on the key, or that had nothing but GETs after it.
double confirmed_share(double put_share, double clients);

// Requests that come in and responses that go out, composed; with the mix and the lists of `result`, where it has them.
Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const CachedOptions& options,
                          const Json& result);

}  // namespace verbscope::cached
