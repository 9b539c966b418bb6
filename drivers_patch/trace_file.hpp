// Reads the files that traced processes write, while they run or after they have ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "drivers_patch/summary.hpp"

namespace verbscope::driver {

// Summarizes the file at `path`. Throws Error if it cannot be read, is not a trace file, is truncated, or was written
// by another build of the library.
Summary read_trace_file(const std::filesystem::path& path);

// All files of a folder, ordered by the start of their processes. Skips files that are still being created.
std::vector<Summary> read_trace_folder(const std::filesystem::path& folder);

// The variables that a traced program needs in its environment, besides LD_PRELOAD, and the library's name in the
// folder of the programs.
inline constexpr const char* kFolderVariable = "VERBSCOPE_TRACE_DIR";
inline constexpr const char* kNicVariable = "VERBSCOPE_TRACE_NIC";
inline constexpr const char* kVerifyVariable = "VERBSCOPE_TRACE_VERIFY";  // set: --verify
inline constexpr const char* kLibrary = "libverbscope_trace.so";

}  // namespace verbscope::driver
