// The facts of a machine that bear on a measurement, as Linux tells them without any privilege.
#pragma once

#include <string>

#include "harness/doctor/sys_tree.hpp"

namespace verbscope {

// The machine as an object: hostname, kernel, cpu, virtual_machine, numa_nodes [{node, cores}], allowed_cores (of this
// process), governors (each once), turbo (true, false, null: not known), huge_pages [{size_kib, total, free}],
// memlock_bytes (null: no limit), iommu, clock_source, perf_event_paranoid, pcm and papi {usable, why}, devices
// (rdma_device_facts). What is not known is null. `path` is where programs are looked for, as in PATH, below the tree's
// root.
Json host_facts(const SysTree& sys, const std::string& path);

}  // namespace verbscope
