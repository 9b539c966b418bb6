// `verbscope doctor`: what of each host bears on a measurement, what spoils it, and what to do.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace verbscope {

// Registers the subcommand's options on `command`; what is returned runs it and gives the exit code: 1 when a host
// could not be asked, each with a line of its own.
std::function<int()> add_doctor_command(CLI::App& command);

}  // namespace verbscope
