// Closed-form models that stores share: the mix of operations, and the datagrams by which a store's server is asked and
// answers, each with an immediate.
#pragma once

#include <cstdint>
#include <vector>

#include "common/json.hpp"
#include "microbench/bench/benchmark.hpp"
#include "pcie_model/predict.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

// Shares of the operations of a run, for the model: as drawn before it, as counted after it (in the clients' measured
// intervals).
struct StoreMix {
  double gets = 1;    // that found their key
  double misses = 0;  // GETs that did not
  double puts = 0;
};
StoreMix store_mix(const StoreOptions& options, const Json& result);

// A request of `bytes` bytes by SEND, received by request_recvs(). 0: header-only.
Prediction predict_request_datagram(const ClusterWire& cluster, const Operation& op, int ports, std::uint64_t bytes);

// Responses of `bytes` bytes. 0: header-only.
struct Responses {
  std::uint64_t bytes;
  double per_op;  // responses per operation
};

// The responses of each kind per operation. All kinds share the lists of `answers_per_post`; null: lists of one.
std::vector<PredictedPart> predict_responses(const ClusterWire& cluster, const Operation& op, int ports,
                                             const std::vector<Responses>& kinds, const Json& answers_per_post);

}  // namespace verbscope
