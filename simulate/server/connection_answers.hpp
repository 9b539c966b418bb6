// What the connection manager tells a program about an identifier, in the structures of its protocol. Values that
// depend on no program are those of Linux 6.1: drivers/infiniband/core/{cma,cm,ucma}.c.
#pragma once

#include <vector>

#include "simulate/server/connection_id.hpp"

namespace verbscope::simulate {

// The device of an identifier's node.
struct CmDevice {
  const CmNetwork& network;
  __be64 guid;
  ibv_port_attr port;
};

// True if the path to the peer is known.
bool has_route(const CmId& id);
// Codes of the timers that InfiniBand defines: 4.096 us * 2^code.
std::uint8_t ack_timeout_code(const CmDevice& device);

ucma_abi_query_addr_resp query_addresses(const CmId& id, const CmDevice& device);
ucma_abi_query_addr_resp query_gids(const CmId& id, const CmDevice& device);
ucma_abi_query_route_resp query_route(const CmId& id, const CmDevice& device);
// A ucma_abi_query_path_resp with its paths.
std::vector<std::byte> query_path(const CmId& id, const CmDevice& device);

// The attributes with which the QP of a connection enters `state`. Returns an errno.
int init_qp_attributes(const CmId& id, const CmDevice& device, std::uint32_t state, ib_uverbs_qp_attr& attr);
ib_uverbs_ah_attr path_to_peer(const CmId& id, const CmDevice& device);
ib_uverbs_ah_attr path_to_group(const CmMembership& membership, const CmDevice& device);

}  // namespace verbscope::simulate
