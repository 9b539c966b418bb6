// Files of other tools, whole, as records.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

struct ImportRequest {
  std::vector<std::filesystem::path> files;
  double interval_s = 1;  // of Intel PCM's files, which do not say it
  std::vector<std::string> command_line;
};

// The records of the files, in order. Records of one configuration are repetitions of one point. Intervals of Intel PCM
// beside one run of another tool become the counters of that run. Lines that are not known are left out, and told on
// stderr by their number. Throws Error, with the reason, when a file cannot be read or nothing in it is known.
std::vector<Record> import_files(const ImportRequest& request);

}  // namespace verbscope
