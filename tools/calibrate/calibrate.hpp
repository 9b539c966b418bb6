// Fits all calibrated parameters of a cluster together, with the real benchmarks.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

namespace verbscope {

struct CalibrateOptions {
  std::string cluster;      // a name in configs/clusters, or a profile's path
  std::size_t rows = 60;    // at most
  std::uint64_t seed = 1;   // of the rows and the folds
  double hours = 2;         // the longest time, by the clock
  double known_within = 5;  // how far off the profile's values may be, in percent of them; 0: nothing is known of them
  int jobs = 0;             // runs at the same time; 0: one for each CPU
  bool write = false;       // puts the values of the fit to all rows into the profile
};

// Runs the benchmarks of `folder` on changed copies of the profile. Says how long it will take, fits (joint_fit.hpp),
// and prints parameters, the errors of the fit and those of rows left out. Returns the exit code. Throws Error for a
// profile without calibrated parameters, too few rows, or a time that is too short for any fit; InterruptedError at
// SIGINT.
int calibrate(const CalibrateOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
