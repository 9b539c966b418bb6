// Converts output files of other tools to records.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

struct ImportRequest {
  std::vector<std::filesystem::path> files;
  double interval_s = 1;  // of Intel PCM's files, which do not contain it
  std::vector<std::string> command_line;
};

// Returns the records of the files in order. Records of one configuration are repetitions of one point. Intervals of
// Intel PCM next to one run of another tool become the counters of that run. Unknown lines are skipped and reported on
// stderr with their number. Throws Error with the reason if a file cannot be read or contains nothing known.
std::vector<Record> import_files(const ImportRequest& request);

}  // namespace verbscope
