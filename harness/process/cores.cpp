#include "harness/process/cores.hpp"

#include "common/error.hpp"
#include "common/files.hpp"

namespace verbscope {

std::string cores_of_node(int node, const std::filesystem::path& root) {
  const std::filesystem::path path = root / fmt::format("sys/devices/system/node/node{}/cpulist", node);
  if (!std::filesystem::exists(path)) fail("numa_node={}: this machine has no such node", node);
  std::string cores = read_text_file(path);
  cores.erase(cores.find_last_not_of(" \n") + 1);
  if (cores.empty()) fail("numa_node={}: the node has no core", node);
  return cores;
}

}  // namespace verbscope
