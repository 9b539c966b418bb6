// The closed-form model of a sequencer's server: what comes in and what goes out, composed.
#include <numeric>
#include <vector>

#include "common/error.hpp"
#include "pcie_model/together.hpp"
#include "systems/sequencer/result.hpp"

namespace verbscope {

namespace {

constexpr Bytes kValue{8};

VerbShape request_shape(const Operation& op, int ports, const SequencerOptions& options) {
  VerbShape shape = verb_shape(op, ports);
  shape.payload = kValue;
  shape.header_only = options.design == SequencerDesign::spec;
  if (shape.header_only) {
    shape.payload = Bytes(0);
    shape.post_list = static_cast<int>(kSpecRecvList);
  }
  return shape;
}

// An answer in a list of `length`, `step` from others. A correction is a regular SEND in a design that sends none
// otherwise.
VerbShape answer_shape(const Operation& op, int ports, bool regular, int length, int step) {
  VerbShape shape = verb_shape(op, ports);
  shape.verb = Verb::send;
  shape.transport = Transport::ud;
  shape.payload = regular ? kValue : Bytes(0);
  shape.header_only = !regular;
  shape.immediate = false;
  shape.inlined = regular;
  shape.post_list = length;
  shape.post_step = step;
  return shape;
}

}  // namespace

Prediction predict_sequencer(const ClusterWire& cluster, const Operation& op, int ports,
                             const SequencerOptions& options, const Json& result) {
  const VerbShape request = request_shape(op, ports, options);
  if (options.design == SequencerDesign::atomic) return predict_responder(cluster, request);
  const bool herd = options.design == SequencerDesign::herd;
  std::vector<PredictedPart> parts;
  Json lists = Json::array({Json::array({1, 1})});
  double corrected = 0;
  if (result.contains("answers_per_post") && result.at("answers_per_post").is_object()) {
    lists = result.at("answers_per_post").at("lists");
    const Json& workers = result.at("workers");
    corrected = workers.at("corrections").get<double>() / workers.at("answers").get<double>();
  }
  double answers = 0;
  int step = 0;  // lists of all lengths share the queues
  for (const Json& each : lists) {
    answers += each[0].get<double>() * each[1].get<double>();
    step = std::gcd(step, each[0].get<int>());
  }
  for (const Json& each : lists) {
    const int length = each[0].get<int>();
    const double share = length * each[1].get<double>() / answers;
    VerbShape regular = answer_shape(op, ports, true, length, step);
    regular.immediate = herd;
    parts.push_back({predict_requester(cluster, regular), herd ? share : share * corrected});
    if (!herd) {
      parts.push_back(
          {predict_requester(cluster, answer_shape(op, ports, false, length, step)), share * (1 - corrected)});
    }
  }
  parts.push_back({herd ? predict_responder(cluster, request) : predict_receiver(cluster, request), 1});
  return predict_together("sequencer", parts);
}

}  // namespace verbscope
