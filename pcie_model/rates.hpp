// Rate bounds of links and wires.
#pragma once

#include "common/units.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// What an operation uses besides its PCIe events.
struct ResourceUse {
  double dma_read_bytes = 0;  // payload of the read completions, without headers
  Bytes wire_out;
  Bytes wire_in;
};

// Sets bounds, binding and bound_mops. Precondition: pcie, wqe_lines, method and shape are set.
void set_bounds(Prediction& prediction, const ClusterWire& cluster, const ResourceUse& use);

// Sets binding and bound_mops from the bounds. Precondition: at least one bound.
void set_binding(Prediction& prediction);

}  // namespace verbscope
