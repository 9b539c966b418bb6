// `verbscope run`: every point of a sweep, one record each.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cli.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/point/roles.hpp"

namespace verbscope {

// A part of the points: those whose place in the list leaves `index` when divided by `count`.
struct Share {
  std::size_t index = 0;
  std::size_t count = 1;
};
// "2/8". Throws UsageError.
Share parse_share(const std::string& text);

struct RunOptions {
  std::string sweep;                  // a path, or a name in configs/sweeps
  std::string hosts;                  // sim:NAME, null, slurm or a hosts file
  std::string out;                    // empty: results/local/<sweep>.jsonl
  bool resume = false;                // leave out points that are ok in `out`
  std::optional<std::uint64_t> seed;  // instead of the sweep's
  std::optional<int> repetitions;     // instead of the sweep's
  std::vector<std::string> set;       // key=value, for every point
  RoleLimits limits;                  // of one point
  LauncherOptions launcher;           // with an empty name: what the hosts need
  int port = 0;                       // of the server; 0: the system picks
  int jobs = 1;                       // points side by side, where one process is a point; 0: one for each CPU
  int retries = 0;                    // of a point that failed
  bool fail_fast = false;             // stop at the first point that failed
  std::string points;                 // a file of point identities, a line each: only these
  Share share;                        // and of these only this part
  int array = 0;                      // submit so many tasks to Slurm instead; 0: run here
  std::vector<std::string> sbatch;    // further arguments of sbatch
};

// Runs the sweep with the binaries in `folder`; progress goes to `out`. Returns 0 when every point is ok, 1 when some
// failed, kExitInterrupted after SIGINT or SIGTERM: the records of the points that had ended are in the file. Throws
// for what is wrong before the first point, a host that cannot be reached among it: the file is left as it was.
int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out);

// Where records go: `out`, or results/local/NAME.jsonl, whose folder is made. Throws when it cannot be.
std::filesystem::path results_path(const std::string& out, const std::string& name);

// Registers the subcommand's options on `command`; what is returned runs it and gives the exit code.
std::function<int()> add_run_command(CLI::App& command);

}  // namespace verbscope
