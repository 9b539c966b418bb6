// The facts that Linux tells about the RDMA devices of a machine.
#pragma once

#include "harness/doctor/sys_tree.hpp"

namespace verbscope {

// The RDMA devices as an array, one object a device: name, driver, driver_version (only drivers from outside the kernel
// tell theirs), firmware, board, numa_node, software (true for soft-RoCE and soft-iWARP), virtual_function (of SR-IOV,
// where its physical function is on this machine), iommu (the type of its group), slot (the PCI address without the
// function, as functions of one card share it), pcie {speed, width, max_speed, max_width, as /sys writes them}, ports
// [{port, state, link_layer, rate, mtu_bytes, netdev, netdev_mtu_bytes, gids [{index, gid, type}], stalls {counter:
// count since the driver was loaded}}]. `stalls`, also of the device as a whole, are those of stall_counters() that are
// not 0. What is not known is null. mtu_bytes is the path MTU that the Ethernet device allows; that of InfiniBand is
// not in /sys.
Json rdma_device_facts(const SysTree& sys);

}  // namespace verbscope
