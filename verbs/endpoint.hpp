// How QPs address each other: the GID of a port, the endpoint that a QP sends to its peer, and the path between two.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

// The data that a peer needs to connect to one QP.
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

struct GidChoice {
  int index = 0;
  ibv_gid gid{};
  ibv_gid_type type = IBV_GID_TYPE_IB;
  bool global = false;  // packets carry a GRH or RoCE's header: on Ethernet, and on InfiniBand with a requested index
  std::string why;      // the reason, one sentence for the user
};

// Chooses the GID of `device`'s port. `requested` -1 picks one: on Ethernet RoCE v2 with an IPv4 address, then RoCE v2
// with a routable IPv6 address, then RoCE v2 link-local, then RoCE v1; the lowest index among equals. On InfiniBand
// index 0. Throws if the requested entry is empty or an Ethernet port has none.
GidChoice choose_gid(const Device& device, int requested);

// Chooses from a table of the non-empty entries of an Ethernet port. Errors name the port by `where`.
GidChoice pick_roce_gid(const std::vector<ibv_gid_entry>& table, int requested, const std::string& where);

// IPv6 notation, "::ffff:10.9.0.1" for an IPv4-mapped one. gid_from_text throws on anything else.
std::string gid_text(const ibv_gid& gid);
ibv_gid gid_from_text(std::string_view text);
bool is_ipv4_mapped(const ibv_gid& gid);
bool is_link_local(const ibv_gid& gid);

// "IB", "RoCE v1", "RoCE v2".
const char* gid_type_name(ibv_gid_type type);
ibv_gid_type gid_type_from_name(std::string_view name);

// The endpoint of `qp` on `device`'s port under the address `gid`.
Endpoint make_endpoint(const Device& device, const GidChoice& gid, const Qp& qp, std::uint32_t psn, std::uint32_t qkey);

Json to_json(const Endpoint& endpoint);
// Throws on missing, unknown or wrong fields and on values out of range. Messages begin with `where`.
Endpoint endpoint_from_json(const Json& json, const std::string& where);

// 256..4096 bytes; from_bytes throws on other values.
int mtu_bytes(ibv_mtu mtu);
ibv_mtu mtu_from_bytes(int bytes);

// Call on both sides before RTR. Throws Error with both sides' values if link layer, GID type or address family differ,
// or if neither LID nor GID can address the peer. Returns the path MTU: the smaller of the two.
ibv_mtu check_compatible(const Endpoint& local, const Endpoint& peer);

// The path from `local` to `peer` for Ah and QpReceive.
PathAddress path_to(const Endpoint& local, const Endpoint& peer);

// The address of a peer, as attributes for libibverbs and as text. Shared by address handles (Ah) and RTR (Qp).
ibv_ah_attr ah_attributes(const PathAddress& path);

// "LID 5" or "GID ::ffff:10.9.0.1 from GID index 1", with service level, traffic class and flow label if not 0.
std::string describe_path(const PathAddress& path);

}  // namespace verbscope
