// A short program on another host, run to its end.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/fd.hpp"
#include "harness/cluster/launcher.hpp"

namespace verbscope {

// Runs a command on the host and returns its standard output, at most 1 MiB of it. Throws "HOST: WHAT: ..." with the
// last line it printed when it does not end well or not within `limit`; an InterruptedError when a stop comes.
std::string remote_call(Launcher& launcher, const Host& host, const std::string& what,
                        const std::vector<std::string>& words, std::chrono::seconds limit, StopSource* stop,
                        Fd input = {});

}  // namespace verbscope
