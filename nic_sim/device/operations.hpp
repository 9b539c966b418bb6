// The tables of a simulated context, through which libibverbs' inline calls reach the device.
#pragma once

#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

// Fills the tables of a new context with the data path and with those calls of the control path that go there.
void set_operations(SimContext& context);

}  // namespace verbscope::sim
