// Work on the keys of memory windows: InfiniBand Architecture Specification 1.3, volume 1, section 10.6.7.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

// True if such work can be posted to QPs of this type.
constexpr bool has_key_work(ibv_qp_type type) {
  return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
}

// Executes the key work of `wqe`. Returns the status of its completion.
ibv_wc_status perform_key_work(HostMemory& memory, SimQp& qp, const SendWqe& wqe);

// Ends the binding of the window of type 2 with this key. False if it is not bound to the QP.
bool invalidate(HostMemory& memory, const SimQp& qp, std::uint32_t key);

// Ends the binding of a window, if it has one. The key stays.
void unbind(SimMw& window);

}  // namespace verbscope::sim
