// `verbscope learn`: learns the profile of a cluster from measurements.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/cluster/launcher.hpp"

namespace verbscope {

struct LearnOptions {
  std::string hosts;                     // as for verbscope run; empty: no measurement
  std::vector<Record> records;           // that exist already, with which the fit begins
  std::string rows;                      // a CSV file as for verbscope validate --rows; empty: none
  std::string cluster;                   // of these rows
  std::string given;                     // the files that all of these are from
  std::string out;                       // profile to write
  std::string report;                    // page to write; empty: none
  double budget_seconds = 900;           // of measuring
  std::size_t points = 300;              // maximum number of measured points
  std::vector<std::string> like;         // known profiles from which the fit may start; empty: all
  std::uint64_t seed = 1;                // of the choice of points that judge the fit
  int jobs = 0;                          // simulations at the same time; 0: one per CPU
  std::optional<std::uint64_t> disturb;  // sim: seed of the noise on the figures
  LauncherOptions launcher;
};

// Measures with the programs of `folder`, appends the records to OUT.jsonl, fits, prints the result, and writes the
// profile. Returns the exit code: 1 for software devices, kExitInterrupted after SIGINT or SIGTERM; the records stay,
// and the next call continues. Throws UsageError and Error for hosts, files and profiles that cannot be used.
int learn(const LearnOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
