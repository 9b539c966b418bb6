// Facts about a machine that affect measurements, read from Linux without privileges, and access to facts that came
// from another machine.
#pragma once

#include <set>
#include <string>

#include "common/json.hpp"
#include "harness/doctor/sys_tree.hpp"

namespace verbscope {

// Returns an object: hostname, kernel, cpu, virtual_machine, numa_nodes [{node, cores}], allowed_cores (of this
// process), governors (each once), turbo (true, false, or null if unknown), huge_pages [{size_kib, total, free}],
// memlock_bytes (null: no limit), iommu, clock_source, perf_event_paranoid, pcm and papi {usable, why}, and devices.
// Unknown values are null. `path`: folders to search for programs, as in PATH, relative to the root of the tree.
//
// `devices` is an array with one object per RDMA device: name, driver, driver_version (only drivers from outside the
// kernel have one), firmware, board, numa_node, software (true for soft-RoCE and soft-iWARP), virtual_function (SR-IOV;
// only if its physical function is on this machine), iommu (the type of its group), slot (the PCI address without the
// function number, which functions of one card share), pcie {speed, width, max_speed, max_width, as in /sys}, ports
// [{port, state, link_layer, rate, mtu_bytes, netdev, netdev_mtu_bytes, gids [{index, gid, type}], stalls {counter:
// count since the driver was loaded}}]. `stalls`, per port and for the device as a whole, has those of kStallCounters
// that are not 0. mtu_bytes is the largest path MTU that the Ethernet device allows; the MTU of InfiniBand is not in
// /sys.
Json host_facts(const SysTree& sys, const std::string& path);

// The value of `key`; null if `object` is not an object or has no such key.
const Json& fact_at(const Json& object, const char* key);
// The array in `key`; empty if there is none.
const Json& fact_list(const Json& object, const char* key);
// A string or a number as printable text of at most 200 characters. Empty for any other type.
std::string fact_text(const Json& value);

// "0-3,8" as a set. Stops at the first syntax error and returns the cores read so far.
std::set<int> core_set(const std::string& list);

}  // namespace verbscope
