// The folder of the program and of its configuration files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace verbscope {

// The folder of the running program: the other programs are its neighbours.
std::filesystem::path program_folder();

// The folders that are searched, in order, those that exist: $VERBSCOPE_CONFIGS; of an installed program
// ../share/verbscope/configs seen from its folder; of another ../../configs, and configs in the source folder of the
// build.
std::vector<std::filesystem::path> config_roots();

// The path of configs/<kind>/<name>.json (kind "clusters", "sweeps", "hosts"; "" for configs itself; a name in a folder
// below is "folder/name"), or else `name` itself when it contains '/' or ends in ".json". Throws Error with the names
// that exist.
std::filesystem::path find_config(const std::string& kind, const std::string& name);

// The names that find_config knows for `kind`, folders below it included, sorted.
std::vector<std::string> list_configs(const std::string& kind);

}  // namespace verbscope
