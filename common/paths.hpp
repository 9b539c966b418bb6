// Finds the folder of the program and its configuration files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace verbscope {

// The folder of the running program. The other programs are in the same folder.
std::filesystem::path program_folder();

// The existing folders to search, in order: $VERBSCOPE_CONFIGS; for an installed program, ../share/verbscope/configs
// relative to its folder; else ../../configs, and configs in the source folder of the build.
std::vector<std::filesystem::path> config_roots();

// The path of configs/<kind>/<name>.json. `kind`: "clusters", "sweeps", "hosts", or "" for configs itself. A name in a
// subfolder is "folder/name". If there is none, `name` itself if it contains '/' or ends in ".json". Throws Error with
// the existing names.
std::filesystem::path find_config(const std::string& kind, const std::string& name);

// All names that find_config accepts for `kind`, subfolders included, sorted.
std::vector<std::string> list_configs(const std::string& kind);

}  // namespace verbscope
