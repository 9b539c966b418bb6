// The subcommands of `verbscope`. NAME.cpp of this folder defines `Action add_NAME(CLI::App& command)`, which describes
// the subcommand, registers its options on `command`, and returns what runs it and gives the exit code. The table is
// made from the list of sources in CMakeLists.txt.
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
