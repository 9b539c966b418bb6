// Wire facts of a cluster in a record. The model uses them to predict other configurations on that cluster.
#pragma once

#include <string>

#include "common/json.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope {

// A flat object with the names of a profile's `wire` section, without sources. wire_from_json is the inverse of
// to_json, except for the cluster's name, which is elsewhere in a record. It throws Error with `where` for a missing,
// ill-typed or unknown key.
Json to_json(const ClusterWire& wire);
ClusterWire wire_from_json(const Json& json, const std::string& where);

}  // namespace verbscope
