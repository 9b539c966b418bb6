// The closed-form model's answer for a point that has run.
#pragma once

#include <string>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/role.hpp"

namespace verbscope {

// The prediction for the role's device as JSON; null, with the reason in `why_not`, when it cannot be modelled.
Json predict_for_device(const Benchmark& benchmark, const Plan& plan, const Role& role, const Json& result,
                        std::string& why_not);

// The prediction as JSON, after the run that gave `result`; null, with the reason in `why_not`, when the model refuses
// the operation.
Json predict_json(const Benchmark& benchmark, const Plan& plan, const ClusterWire& wire, int ports, const Json& result,
                  std::string& why_not);

}  // namespace verbscope
