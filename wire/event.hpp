// PCIe bytes of a completion event.
#pragma once

#include "common/units.hpp"

namespace verbscope {

// Arming a completion queue: one MMIO of two words (rdma-core 44: mlx5_arm_cq, mlx4_arm_cq).
inline constexpr Bytes kArmDoorbell{8};
// Then the adapter writes an entry to the event queue (Linux 6.1: struct mlx5_eqe; mlx4 with 64-byte entries) and an
// MSI-X interrupt message (PCI Express Base Specification 3.0, section 6.1.4: one dword).
inline constexpr Bytes kEventQueueEntry{64};
inline constexpr Bytes kInterruptMessage{4};

}  // namespace verbscope
