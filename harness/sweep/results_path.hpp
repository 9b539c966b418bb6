// The path of a run's results file.
#pragma once

#include <filesystem>
#include <string>

namespace verbscope {

// `out`; if empty, results/local/NAME.jsonl, whose folder is created. Throws if that fails.
std::filesystem::path results_path(const std::string& out, const std::string& name);

}  // namespace verbscope
