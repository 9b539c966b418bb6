// The `wire` section of a cluster profile (configs/clusters/NAME.json) has the facts of an adapter and its slot that
// model and simulator both need.
#pragma once

#include <optional>
#include <string>

#include "common/json.hpp"
#include "common/units.hpp"
#include "wire/link_type.hpp"
#include "wire/pcie.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

// The schema's name in every profile. A reader refuses every other value.
inline constexpr const char* kClusterSchema = "verbscope.cluster/1";

struct ClusterWire {
  std::string name;
  PcieLink pcie;
  NicFamily family = NicFamily::mlx5;
  LinkType link_type = LinkType::infiniband;
  int ports = 1;
  BytesPerSecond port_rate;  // data rate of one port, line encoding taken off
  Bytes mtu;                 // payload of one packet, on RoCE too
  Bytes blueflame_max;       // largest WQE that goes by BlueFlame
  Bytes cqe_bytes;
  Bytes doorbell_bytes;
  Bytes max_inline;       // largest inline payload that a QP can be created with
  int recv_prefetch = 1;  // RECV WQEs that one DMA read fetches, a power of two, aligned groups
};

// `profile` is the whole file, `where` its name for messages. Throws Error with one line: an absent, unknown or
// ill-typed key, a value out of range, a parameter without source or cite.
ClusterWire read_cluster_wire(const Json& profile, const std::string& where);

// A parameter of a profile is {"value": v, "source": "documented|calibrated|assumed", "cite": "..."}. Reads `key` of
// `section` (named `where` in messages) and returns the value; throws Error when source or cite are absent, empty or
// not one of those.
Json read_parameter(JsonFields& section, const std::string& key, const std::string& where);

// Returns `cluster` with another slot. Another generation brings its lane rate and header sizes (kPcieGenerations);
// MPS, MRRS and RCB stay, which belong to the host. Throws Error for a generation or width that does not exist.
ClusterWire with_pcie(ClusterWire cluster, std::optional<int> generation, std::optional<int> lanes);

}  // namespace verbscope
