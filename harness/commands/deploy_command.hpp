// `verbscope deploy`: the programs on the hosts of a file, ahead of a run, and their removal.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace verbscope {

// Registers the subcommand's options on `command`; what is returned runs it and gives the exit code: 1 when a host
// failed, each with a line of its own.
std::function<int()> add_deploy_command(CLI::App& command);

}  // namespace verbscope
