// Command-line conventions of all verbscope programs, on top of CLI11: one line per error; exit codes 0 (success, also
// --help and --version), 1 (failure), 2 (wrong usage) and 130 (interrupted); `-` and `_` are equal in long option
// names.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"

namespace CLI {
class App;
}

namespace verbscope {

inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as in shells
inline constexpr int kExitBrokenPipe = 141;   // 128 + SIGPIPE

// Calibrates the clock and runs `body` with "--post-list=4" written as "--post_list=4". Prints an exception as one line
// "program: message" on stderr. Returns the exit code.
int run_main(const char* program, int argc, char** argv, const std::function<int(int, char**)>& body);

// Calls app.parse inside a body of run_main. For --help and --version, prints the text on stdout and ends the program
// with 0. Rejects empty values. Adds --version to `app`. Register long names with `_`.
void parse_args(CLI::App& app, int argc, char** argv);

// Parses a duration with a unit: "2ms", "500us", "1.5s", "3" (seconds), "2min"; units ps, ns, us, ms, s, min. Must not
// be negative. Throws UsageError that names `option`.
Picos parse_duration(std::string_view text, const std::string& option);

}  // namespace verbscope
