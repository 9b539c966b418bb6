// The subcommands of `verbscope`. NAME.cpp in this folder defines `Action add_NAME(CLI::App& command)`, which sets the
// description, registers the options on `command`, and returns the function that runs the subcommand and returns the
// exit code. CMake makes the table from the list of sources in CMakeLists.txt.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

namespace verbscope {

using Action = std::function<int()>;

struct Command {
  const char* name;
  Action (*add)(CLI::App& command);
};

// Every subcommand, in the order of `verbscope --help`.
std::span<const Command> all_commands();

}  // namespace verbscope
