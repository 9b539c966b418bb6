#include "nic_sim/nic/windows.hpp"

namespace verbscope::sim {
namespace {

SimMw* window_of_index(const HostMemory& memory, std::uint32_t key) {
  Region* const region = memory.of_index(key);
  return region != nullptr && region->is_window ? static_cast<SimMw*>(region) : nullptr;
}

// The region that the window may be bound to; null if it may not: compliance statements C10-73 to C10-75.
const Region* bindable(const HostMemory& memory, const SimQp& qp, const SendWqe& wqe, std::uint32_t lkey) {
  constexpr int kWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const bool writes = (static_cast<int>(wqe.operand) & kWrites) != 0;
  const int needed = IBV_ACCESS_MW_BIND | Region::kLocalRead | (writes ? int{IBV_ACCESS_LOCAL_WRITE} : 0);
  return memory.granted(qp, lkey, wqe.remote_address, wqe.compare, needed);
}

// C10-72, o10-37.2.30, o10-37.2.40. A window of type 1 may be bound again, to nothing too. One of type 2 must be
// invalidated before, and only the QP that binds it may use it (type 2B).
ibv_wc_status bind(const HostMemory& memory, SimQp& qp, const SendWqe& wqe) {
  SimMw* const window = window_of_index(memory, wqe.immediate);
  if (window == nullptr || owner_of(window->pd) != qp.pd) return IBV_WC_MW_BIND_ERR;
  const bool again = window->type == IBV_MW_TYPE_1;
  if (!again && (window->translated_by != nullptr || wqe.compare == 0)) return IBV_WC_MW_BIND_ERR;
  if (wqe.compare > 0) {
    const Region* const region = bindable(memory, qp, wqe, qp.send.sges_of(wqe.index)->lkey);
    if (region == nullptr) return IBV_WC_MW_BIND_ERR;
    unbind(*window);
    window->begin = wqe.remote_address;
    window->bytes = wqe.compare;
    window->memory = region->at(wqe.remote_address);
    window->space = region->space;
    window->owner = again ? static_cast<const void*>(qp.pd) : &qp;
    window->access = static_cast<int>(wqe.operand);
    window->translated_by = region->translated_by;
    ++window->translated_by->windows;
  } else {
    unbind(*window);
  }
  window->key = wqe.rkey;
  return IBV_WC_SUCCESS;
}

}  // namespace

void unbind(SimMw& window) {
  if (window.translated_by != nullptr) --window.translated_by->windows;
  window.translated_by = nullptr;
  window.owner = nullptr;
  window.bytes = 0;
}

bool invalidate(HostMemory& memory, const SimQp& qp, std::uint32_t key) {
  SimMw* const window = window_of_index(memory, key);
  if (window == nullptr || window->key != key || window->owner != &qp) return false;
  unbind(*window);
  return true;
}

ibv_wc_status perform_key_work(HostMemory& memory, SimQp& qp, const SendWqe& wqe) {
  if (wqe.key_work == KeyWork::bind) return bind(memory, qp, wqe);
  return invalidate(memory, qp, wqe.rkey) ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
}

}  // namespace verbscope::sim
