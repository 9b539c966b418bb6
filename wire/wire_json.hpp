// The wire facts of a cluster in a record, from which a model can say what another configuration would cost there.
#pragma once

#include <string>

#include "common/json.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope {

// The object is flat, under the names of a profile's `wire` section, without sources. wire_from_json is the inverse of
// to_json but for the name, which a record has elsewhere; it throws Error with `where` on anything missing, ill-typed
// or unknown.
Json to_json(const ClusterWire& wire);
ClusterWire wire_from_json(const Json& json, const std::string& where);

}  // namespace verbscope
