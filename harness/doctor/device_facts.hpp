// Facts about a machine's RDMA devices, read from /sys.
#pragma once

#include "harness/doctor/sys_tree.hpp"

namespace verbscope {

// Returns an array with one object per RDMA device: name, driver, driver_version (only drivers from outside the kernel
// have one), firmware, board, numa_node, software (true for soft-RoCE and soft-iWARP), virtual_function (SR-IOV; only
// if its physical function is on this machine), iommu (the type of its group), slot (the PCI address without the
// function number, which functions of one card share), pcie {speed, width, max_speed, max_width, as in /sys}, ports
// [{port, state, link_layer, rate, mtu_bytes, netdev, netdev_mtu_bytes, gids [{index, gid, type}], stalls {counter:
// count since the driver was loaded}}]. `stalls`, per port and for the device as a whole, has those of kStallCounters
// that are not 0. Unknown values are null. mtu_bytes is the largest path MTU that the Ethernet device allows; the MTU
// of InfiniBand is not in /sys.
Json rdma_device_facts(const SysTree& sys);

}  // namespace verbscope
