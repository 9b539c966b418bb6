// Fits a cluster profile to its published rows with the real benchmarks, and shows the residuals.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace verbscope {

// `cluster` is a name in configs/clusters or a profile's path. Runs the benchmarks of `folder` on changed copies of the
// profile and prints a row a published figure; with `write` puts the fitted values into the profile's file. Returns the
// exit code; throws when a benchmark fails.
int recalibrate_cluster(const std::string& cluster, bool write, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
