#include "verbs/path.hpp"

#include <fmt/format.h>

#include "verbs/gid.hpp"

namespace verbscope {

namespace {
constexpr std::uint8_t kHopLimit = 64;  // enough for any data centre; RoCE v2 puts it into the IP header
}

ibv_ah_attr ah_attributes(const PathAddress& path) {
  ibv_ah_attr attr{};
  attr.port_num = path.port;
  attr.dlid = path.lid;
  attr.sl = path.service_level;
  if (path.global) {
    attr.is_global = 1;
    attr.grh.dgid = path.gid;
    attr.grh.sgid_index = path.gid_index;
    attr.grh.hop_limit = kHopLimit;
  }
  return attr;
}

std::string describe_path(const PathAddress& path) {
  if (!path.global) return fmt::format("LID {}", path.lid);
  return fmt::format("GID {} from GID index {}", gid_text(path.gid), path.gid_index);
}

}  // namespace verbscope
