// The files in which traced processes leave their counts, read by another process while they run or when they are gone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "drivers_patch/summary.hpp"

namespace verbscope::driver {

// What stands in the file at `path`. Throws Error: a file that cannot be read, is no such file, is cut off, or was
// written by another build of the library.
Summary read_trace_file(const std::filesystem::path& path);

// The files of a folder in the order of their processes' beginning; those that a process is just making are left out.
std::vector<Summary> read_trace_folder(const std::filesystem::path& folder);

// What programs are to have in their environment, beside the library in LD_PRELOAD, and the library's name beside the
// programs.
inline constexpr const char* kFolderVariable = "VERBSCOPE_TRACE_DIR";
inline constexpr const char* kNicVariable = "VERBSCOPE_TRACE_NIC";
inline constexpr const char* kVerifyVariable = "VERBSCOPE_TRACE_VERIFY";  // set: --verify
inline constexpr const char* kLibrary = "libverbscope_trace.so";

}  // namespace verbscope::driver
