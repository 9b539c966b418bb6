// The results file of a run: the one asked for, or the usual place.
#pragma once

#include <filesystem>
#include <string>

namespace verbscope {

// `out`, or results/local/NAME.jsonl when `out` is empty, whose folder is made. Throws when it cannot be.
std::filesystem::path results_path(const std::string& out, const std::string& name);

}  // namespace verbscope
