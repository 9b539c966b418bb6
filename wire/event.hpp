// The bytes that a completion event moves on PCIe.
#pragma once

#include "common/units.hpp"

namespace verbscope {

// Arming a completion queue: one MMIO of two words (rdma-core 44: mlx5_arm_cq, mlx4_arm_cq).
inline constexpr Bytes kArmDoorbell{8};
// The adapter then writes an entry of the event queue (Linux 6.1: struct mlx5_eqe; mlx4 with 64-byte entries) and the
// message of an MSI-X interrupt (PCI Express Base Specification 3.0, section 6.1.4: one dword).
inline constexpr Bytes kEventQueueEntry{64};
inline constexpr Bytes kInterruptMessage{4};

}  // namespace verbscope
