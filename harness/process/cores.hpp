// The cores of a NUMA node of this machine.
#pragma once

#include <filesystem>
#include <string>

namespace verbscope {

// The cores of a memory node as Linux lists them, "0-13,28-41". /sys is looked for in `root`. Throws when there is no
// such node, or it has no core.
std::string cores_of_node(int node, const std::filesystem::path& root = "/");

}  // namespace verbscope
