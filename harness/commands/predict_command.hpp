// `verbscope predict`: the closed-form model by itself, for an operation or for a number of WQEs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace verbscope {

// Registers the subcommand's options on `command`; what is returned runs it and gives the exit code.
std::function<int()> add_predict_command(CLI::App& command);

}  // namespace verbscope
