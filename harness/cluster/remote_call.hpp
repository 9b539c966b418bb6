// Runs a short command on another host.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/fd.hpp"
#include "harness/cluster/launcher.hpp"

namespace verbscope {

// Runs a command on the host and returns its standard output, at most 1 MiB. Throws "HOST: WHAT: ..." with its last
// line if it fails or exceeds `limit`, and InterruptedError at a stop.
std::string remote_call(Launcher& launcher, const Host& host, const std::string& what,
                        const std::vector<std::string>& words, std::chrono::seconds limit, StopSource* stop,
                        Fd input = {});

}  // namespace verbscope
