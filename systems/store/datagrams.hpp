// The closed-form model of the datagrams by which a store's server is asked and answers, each with an immediate.
#pragma once

#include <cstdint>

#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/answer_list.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// A request of so many bytes, 0 for one of headers alone, that comes by SEND to MessageRecvs.
Prediction predict_request_datagram(const ClusterWire& cluster, const Operation& op, int ports, std::uint64_t bytes);

// A response of so many bytes, 0 for one of headers alone, in one of `lists`.
Prediction predict_response_datagram(const ClusterWire& cluster, const Operation& op, int ports, std::uint64_t bytes,
                                     const ListShare& lists);

}  // namespace verbscope
