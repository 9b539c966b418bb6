#include "verbs/path.hpp"

#include <fmt/format.h>

#include "verbs/gid.hpp"

namespace verbscope {

namespace {
constexpr std::uint8_t kHopLimit = 64;  // enough for any data centre; RoCE v2 copies it into the IP header
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
    attr.grh.traffic_class = path.traffic_class;
    attr.grh.flow_label = path.flow_label;
  }
  return attr;
}

std::string describe_path(const PathAddress& path) {
  std::string text = path.global ? fmt::format("GID {} from GID index {}", gid_text(path.gid), path.gid_index)
                                 : fmt::format("LID {}", path.lid);
  if (path.service_level != 0) text += fmt::format(", service level {}", path.service_level);
  if (path.traffic_class != 0) text += fmt::format(", traffic class {}", path.traffic_class);
  if (path.flow_label != 0) text += fmt::format(", flow label {}", path.flow_label);
  return text;
}

}  // namespace verbscope
