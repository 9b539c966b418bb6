// The closed-form model of a sequencer's server: what comes in and what goes out, composed.
#include <vector>

#include "pcie_model/predict.hpp"
#include "systems/rpc/server.hpp"
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
    shape.post_list = static_cast<int>(kRequestRecvList);
  }
  return shape;
}

// An answer in one of `lists`. A correction is a regular SEND in a design that sends none otherwise.
VerbShape answer_shape(const Operation& op, int ports, bool regular, const ListShare& lists) {
  VerbShape shape = verb_shape(op, ports);
  shape.verb = Verb::send;
  shape.transport = Transport::ud;
  shape.payload = regular ? kValue : Bytes(0);
  shape.header_only = !regular;
  shape.immediate = false;
  shape.inlined = regular;
  shape.post_list = lists.length;
  shape.post_step = lists.step;
  return shape;
}

}  // namespace

Prediction predict_sequencer(const ClusterWire& cluster, const Operation& op, int ports,
                             const SequencerOptions& options, const Json& result) {
  const VerbShape request = request_shape(op, ports, options);
  if (options.design == SequencerDesign::atomic) return predict_responder(cluster, request);
  const bool herd = options.design == SequencerDesign::herd;
  std::vector<PredictedPart> parts;
  Json batches;
  double corrected = 0;
  if (result.contains("answers_per_post") && result.at("answers_per_post").is_object()) {
    batches = result.at("answers_per_post");
    const Json& workers = result.at("workers");
    corrected = workers.at("corrections").get<double>() / workers.at("answers").get<double>();
  }
  for (const ListShare& lists : list_shares(batches, 1)) {
    VerbShape regular = answer_shape(op, ports, true, lists);
    regular.immediate = herd;
    parts.push_back({predict_requester(cluster, regular), herd ? lists.answers : lists.answers * corrected});
    if (!herd) {
      parts.push_back(
          {predict_requester(cluster, answer_shape(op, ports, false, lists)), lists.answers * (1 - corrected)});
    }
  }
  parts.push_back({herd ? predict_responder(cluster, request) : predict_receiver(cluster, request), 1});
  return predict_together("sequencer", parts);
}

}  // namespace verbscope
