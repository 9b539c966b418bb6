// The `environment` of a record: the machine and the program that made it.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

// Facts about the build, compiled in. git_revision is "unknown" outside a git checkout and ends in "-dirty" if files
// were changed.
struct BuildInfo {
  std::string version;
  std::string git_revision;
  std::string build_type;
  std::string compiler;
  std::string flags;
};
BuildInfo build_info();

// Returns the `environment` of a record: fabric ("verbs", "sim:NAME", "null" or "host"), simulated, host and build
// facts, UTC time, command line. Throws Error for another fabric.
Json make_environment(const std::string& fabric, const std::vector<std::string>& command_line);

// The fabric of benchmarks without peers: this machine only.
inline constexpr const char* kHostFabric = "host";

// True if `fabric` is one of the four forms; true if it is a simulated one.
bool is_fabric(const std::string& fabric);
bool is_simulated(const std::string& fabric);

}  // namespace verbscope
