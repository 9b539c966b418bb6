// Asking each host of a run what it is: `verbscope doctor --json` there, the same code here.
#pragma once

#include "common/json.hpp"
#include "harness/cluster/deploy.hpp"
#include "harness/cluster/hosts.hpp"

namespace verbscope {

// host_facts of this machine.
Json facts_here();

// host_facts of the host, asked by the launcher; of this machine when nothing was deployed to it. Throws one line with
// the host's name.
Json facts_of(const Host& host, Launcher* launcher, const Deployment& deployment, StopSource* stop);

// Throws when no point can run on the host of these facts: it has no RDMA device, or not the one that the hosts file
// names.
void require_device(const Host& host, const Json& facts);

}  // namespace verbscope
