// The QP types of verbscope's transports, for tests that run on each of them.
#pragma once

#include <infiniband/verbs.h>

#include <vector>

#include "verbs/ibv_codes.hpp"

namespace verbscope {

inline std::vector<ibv_qp_type> all_qp_types() {
  std::vector<ibv_qp_type> types;
  for (const QpTypeOfTransport& row : kQpTypes) types.push_back(row.type);
  return types;
}

// The transports that have `fact`: qp_types_with(&TransportFacts::connected).
inline std::vector<ibv_qp_type> qp_types_with(bool TransportFacts::*fact) {
  std::vector<ibv_qp_type> types;
  for (const TransportFacts& transport : kTransports) {
    if (transport.*fact) types.push_back(qp_type(transport.value));
  }
  return types;
}

}  // namespace verbscope
