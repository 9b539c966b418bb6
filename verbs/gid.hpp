// The GID of a port: its choice, its description for the user, and the check that two sides chose addresses that can
// communicate.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/endpoint.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

struct GidChoice {
  int index = 0;
  ibv_gid gid{};
  ibv_gid_type type = IBV_GID_TYPE_IB;
  bool global =
      false;        // packets carry a GRH (or RoCE's header): on Ethernet, and on InfiniBand if an index was requested
  std::string why;  // the reason, one sentence for the user
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

// Call on both sides before RTR. Throws an error of one line with both sides' values if link layer, GID type or address
// family differ, or if neither LID nor GID can address the peer. Returns the path MTU: the smaller of the two.
ibv_mtu check_compatible(const Endpoint& local, const Endpoint& peer);

// The path from `local` to `peer` for Ah and QpReceive.
PathAddress path_to(const Endpoint& local, const Endpoint& peer);

}  // namespace verbscope
