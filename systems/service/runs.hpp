// The fabrics of a service.
#pragma once

#include "systems/service/service.hpp"

namespace verbscope {

// Runs this process as the server or as a client, on a device. Throws Error.
void run_on_host(Service& service, const ServiceOptions& options);
// Runs the server and its clients on a simulated cluster. Throws Error.
void run_simulated(Service& service, const ServiceOptions& options);

}  // namespace verbscope
