// Lists the cores of a NUMA node.
#pragma once

#include <filesystem>
#include <string>

namespace verbscope {

// The cores of a NUMA node of this machine in Linux's format, "0-13,28-41". `root` contains /sys. Throws if the node
// does not exist or has no core.
std::string cores_of_node(int node, const std::filesystem::path& root = "/");

}  // namespace verbscope
