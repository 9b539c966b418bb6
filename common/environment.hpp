// The environment of a record: the machine and the program that made it.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

// Facts of the build, compiled in. git_revision is "unknown" outside a git checkout and ends in "-dirty" when files
// differ.
struct BuildInfo {
  std::string version;
  std::string git_revision;
  std::string build_type;
  std::string compiler;
  std::string flags;
};
BuildInfo build_info();

// The `environment` of a record: fabric ("verbs", "sim:NAME", "null" or "host"), simulated, host and build facts, UTC
// time, command line. Throws Error for another fabric.
Json make_environment(const std::string& fabric, const std::vector<std::string>& command_line);

// This machine alone: the fabric of benchmarks that have no peers.
inline constexpr const char* kHostFabric = "host";

// Whether `fabric` is one of the four forms; whether it is a simulated one.
bool is_fabric(const std::string& fabric);
bool is_simulated(const std::string& fabric);

}  // namespace verbscope
