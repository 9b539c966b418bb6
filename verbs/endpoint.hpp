// An endpoint: what a peer must know about one QP to connect to it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "common/json.hpp"

namespace verbscope {

struct GidChoice;
class Device;
class Qp;

struct Endpoint {
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::uint32_t qkey = 0;  // UD
  std::uint16_t lid = 0;   // 0 on Ethernet
  std::string gid;         // IPv6 notation
  int gid_index = 0;
  std::string gid_type;  // "IB", "RoCE v1", "RoCE v2"
  bool global = false;   // needs a GRH
  int mtu = 0;           // bytes: the port's active MTU
  int port = 1;
  std::string link_layer;  // "InfiniBand", "Ethernet"

  bool operator==(const Endpoint&) const = default;
};

// The endpoint of `qp` on `device`'s port under the address `gid`.
Endpoint make_endpoint(const Device& device, const GidChoice& gid, const Qp& qp, std::uint32_t psn, std::uint32_t qkey);

Json to_json(const Endpoint& endpoint);
// Throws on missing, unknown or wrong fields and on values out of range. Messages begin with `where`.
Endpoint endpoint_from_json(const Json& json, const std::string& where);

// 256..4096 bytes; from_bytes throws on other values.
int mtu_bytes(ibv_mtu mtu);
ibv_mtu mtu_from_bytes(int bytes);

}  // namespace verbscope
