// The fabrics of a service.
#pragma once

#include "microbench/bench/outcome.hpp"
#include "systems/service/service.hpp"

namespace verbscope {

// Runs this process as a server or as a client, on a device. Throws Error.
Outcome run_on_host(Service& service, const ServiceOptions& options);
// Runs the servers and their clients on a simulated cluster. Throws Error.
Outcome run_simulated(Service& service, const ServiceOptions& options);

}  // namespace verbscope
