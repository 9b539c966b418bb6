// `verbscope reproduce`: the published figures of a paper and its curves, on the simulated clusters.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace verbscope {

// Registers the subcommand's options on `command`; what is returned runs it and gives the exit code: 1 when a row is
// off by more than it may be or a point failed, kExitInterrupted after SIGINT or SIGTERM.
std::function<int()> add_reproduce_command(CLI::App& command);

}  // namespace verbscope
