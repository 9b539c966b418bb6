#include "microbench/run/prediction.hpp"

#include "common/error.hpp"
#include "microbench/run/device_facts.hpp"
#include "pcie_model/predict.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {

void predict_point(const Benchmark& benchmark, const Plan& plan, const ClusterWire& wire, const NodeReport& own,
                   Outcome& outcome) {
  try {
    const int ports = static_cast<int>(plan.topology.ports);
    Prediction prediction = benchmark.predict_run(wire, plan.operation, ports, outcome.result);
    if (own.window_ops > 0 && own.cq_armings) {
      const double armings = static_cast<double>(*own.cq_armings) / static_cast<double>(own.window_ops);
      prediction = with_completion_events(prediction, armings);
    }
    outcome.prediction = to_json(prediction);
  } catch (const Error& error) {
    outcome.no_prediction = error.what();
  }
}

void predict_for_device(const Benchmark& benchmark, const Plan& plan, const NodeRun& node, const NodeReport& own,
                        Outcome& outcome) {
  const DeviceFacts facts =
      read_device_facts("/sys", node.device().name(), node.device().port(), static_cast<int>(plan.topology.ports),
                        node.mtu(), plan.operation.inline_limit);
  if (facts.wire) {
    predict_point(benchmark, plan, *facts.wire, own, outcome);
  } else {
    outcome.no_prediction = facts.why_not;
  }
}

}  // namespace verbscope
