// Collects the facts of each host of a run: by `verbscope doctor --json` there, by the same code on this machine.
#pragma once

#include "common/json.hpp"
#include "harness/cluster/deploy.hpp"
#include "harness/cluster/hosts.hpp"

namespace verbscope {

Json facts_here();

// host_facts of the host, read through the launcher; of this machine if nothing was deployed to the host. Throws one
// line with the host's name.
Json facts_of(const Host& host, Launcher* launcher, const Deployment& deployment, StopSource* stop);

// Throws if no point can run on a host with these facts: it has no RDMA device, or not the one in the hosts file.
void require_device(const Host& host, const Json& facts);

}  // namespace verbscope
