// Command-line conventions of every verbscope program, on top of CLI11: one line per error, exit codes 0 (done, also
// --help and --version), 1 (failed), 2 (wrong usage) and 130 (interrupted), `-` and `_` both accepted in long option
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

inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells have it
inline constexpr int kExitBrokenPipe = 141;   // 128 + SIGPIPE

// Calibrates the clock and runs `body` with the arguments normalised (see normalise_option). Prints an exception as
// exactly one line "program: message" on stderr. Returns the exit code.
int run_main(const char* program, int argc, char** argv, const std::function<int(int, char**)>& body);

// app.parse for a body of run_main: prints help or version on stdout when asked for, and then ends the program with 0.
// Refuses empty values. Adds --version to `app`. Register long names with `_`.
void parse_args(CLI::App& app, int argc, char** argv);

// "--post-list=4" -> "--post_list=4"; anything but a long option stays as it is.
std::string normalise_option(std::string_view argument);

// A time with a unit: "2ms", "500us", "1.5s", "3" (seconds), "2min"; units ps, ns, us, ms, s, min. Not negative.
// Throws UsageError naming `option`.
Picos parse_duration(std::string_view text, const std::string& option);

}  // namespace verbscope
