// The rates that a link or a wire allows.
#pragma once

#include "common/units.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// The resources that an operation takes besides its PCIe events.
struct ResourceUse {
  double dma_read_bytes = 0;  // payload of the reads' completions, without headers
  Bytes wire_out;
  Bytes wire_in;
};

// Fills bounds, binding and bound_mops of a prediction whose pcie, wqe_lines, method and shape are set.
void set_bounds(Prediction& prediction, const ClusterWire& cluster, const ResourceUse& use);

// Fills binding and bound_mops from the bounds, of which there is one at least.
void set_binding(Prediction& prediction);

}  // namespace verbscope
