// Options shared by several subcommands, and the names of their values.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "harness/cluster/launcher.hpp"

namespace verbscope {

inline void add_results(CLI::App& command, std::vector<std::string>& results) {
  command.add_option("results", results, "results files")->required();
}

// In the form that check_output takes.
inline std::vector<std::filesystem::path> paths_of(const std::vector<std::string>& files) {
  return {files.begin(), files.end()};
}

// With `all`, every record of the results files counts; else the last of each point (chosen_records).
inline void add_all(CLI::App& command, bool& all) {
  command.add_flag("--all", all, "use every record (default: only the last of each point)");
}

// Throws UsageError if there is no cluster of this name. An empty name is accepted.
inline void check_cluster(const std::string& cluster) {
  if (cluster.empty()) return;
  try {
    find_config("clusters", cluster);
  } catch (const Error& error) {
    throw UsageError(std::string("--cluster: ") + error.what());
  }
}

// The conditions of keep_where (analysis/keys.hpp).
inline void add_where(CLI::App& command, std::vector<std::string>& where) {
  command
      .add_option("--where", where,
                  "use only records with key=value or key=value,value; the key is an option, benchmark, fabric, label "
                  "or file; may be repeated")
      ->allow_extra_args(false);
}

// Sets `format` to one of `formats`, which must contain "text" and "json". --json is short for --format json.
inline void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& formats) {
  CLI::Option* named =
      command.add_option("--format", format, "output format")->transform(one_of(formats))->default_str("text");
  command
      .add_flag_callback(
          "--json", [&format] { format = "json"; }, "the same as --format json")
      ->excludes(named);
}

// Options to reach the hosts. `names`: help text with the launchers that the subcommand accepts, and its default.
inline void add_launcher(CLI::App& command, LauncherOptions& launcher, const char* names) {
  command.add_option("--launcher", launcher.name, names);
  command.add_option("--ssh_config", launcher.ssh_config, "a configuration file for ssh instead of yours");
}
inline constexpr const char* kAnyLauncher = "local, ssh or slurm (default: what the hosts need)";

}  // namespace verbscope
