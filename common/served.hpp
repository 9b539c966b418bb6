// Programs that run command after command in one process, for a harness: to start a process takes longer than a short
// simulation. `PROGRAM --serve` reads commands from standard input: a line each, with the arguments as a JSON array.
// When a command has ended it prints a line with kServedEnd and the exit code. It ends with its input.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

inline constexpr std::string_view kServeOption = "--serve";
inline constexpr std::string_view kServedEnd = "verbscope-served ";

// The line of a command.
std::string served_line(const std::vector<std::string>& arguments);

// As run_main; with the only argument --serve, runs `body` for each command.
int run_or_serve(const char* program, int argc, char** argv, const std::function<int(int, char**)>& body);

}  // namespace verbscope
