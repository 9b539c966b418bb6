#include "harness/sweep/benchmarks.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark) {
  if (std::ranges::find(kBenchmarks, benchmark) == kBenchmarks.end()) {
    fail("no benchmark is called \"{}\"; there are {}", benchmark, fmt::join(kBenchmarks, ", "));
  }
  return folder / benchmark;
}

}  // namespace verbscope
