#include "harness/sweep/results_path.hpp"

#include "common/error.hpp"

namespace verbscope {

std::filesystem::path results_path(const std::string& out, const std::string& name) {
  if (!out.empty()) return out;
  const std::filesystem::path folder = "results/local";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("cannot make the folder {}: {}", folder.string(), error.message());
  return folder / (name + ".jsonl");
}

}  // namespace verbscope
