#include "microbench/run/prediction.hpp"

#include "common/error.hpp"
#include "microbench/run/device_facts.hpp"
#include "pcie_model/render.hpp"
#include "pcie_model/together.hpp"

namespace verbscope {

Json predict_json(const Benchmark& benchmark, const Plan& plan, const ClusterWire& wire, int ports, const Json& result,
                  std::string& why_not) {
  try {
    Prediction prediction = benchmark.predict_run(wire, plan.operation, ports, result);
    const double ops = result.value("window_ops", 0.0);
    if (ops > 0 && result.contains("cq_armings")) {
      prediction = with_completion_events(prediction, result.at("cq_armings").get<double>() / ops);
    }
    return to_json(prediction);
  } catch (const Error& error) {
    why_not = error.what();
    return {};
  }
}

Json predict_for_device(const Benchmark& benchmark, const Plan& plan, const Role& role, const Json& result,
                        std::string& why_not) {
  const int ports = static_cast<int>(plan.topology.ports);
  const DeviceFacts facts = read_device_facts("/sys", role.device().name(), role.device().port(), ports, role.mtu(),
                                              plan.operation.inline_limit);
  if (!facts.wire) {
    why_not = facts.why_not;
    return {};
  }
  return predict_json(benchmark, plan, *facts.wire, ports, result, why_not);
}

}  // namespace verbscope
