// The closed-form model of HERD's server.
#pragma once

#include "pcie_model/predict.hpp"
#include "systems/herd/ends.hpp"
#include "systems/store/store.hpp"

namespace verbscope::herd {

// Requests that come in and responses that go out, composed; with the mix and the lists of `result`, where it has them.
Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                          const Json& result);

}  // namespace verbscope::herd
