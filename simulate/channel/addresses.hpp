// The network addresses of the nodes, as programs know them.
#pragma once

#include <cstdint>

namespace verbscope::simulate {

// Node N has 10.1.0.(1 + N), the address of port 1 of its adapter (as in its GIDs for RoCE v2). In host byte order.
inline constexpr std::uint32_t address_of_node(std::uint32_t node) {
  return 0x0a01'0001 + node;
}
// 127.0.0.0/8: the own node.
inline constexpr bool is_own_node(std::uint32_t address) {
  return address >> 24 == 127;
}

}  // namespace verbscope::simulate
