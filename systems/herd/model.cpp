#include "systems/herd/model.hpp"

#include <vector>

#include "microbench/loop/answer_list.hpp"
#include "pcie_model/together.hpp"
#include "systems/herd/region.hpp"

namespace verbscope::herd {

namespace {

// A request of so many bytes, which by WRITE ends where its slot ends.
Prediction predict_request(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                           std::uint64_t bytes) {
  VerbShape shape = verb_shape(op, ports);
  shape.payload = Bytes(bytes);
  shape.inlined = bytes <= options.request_inline;
  shape.max_inline_cap = Bytes(options.request_inline);
  if (options.store.requests_by_send) {
    shape.immediate = true;
    shape.post_list = static_cast<int>(kRecvList);
    return predict_receiver(cluster, shape);
  }
  const RequestRegion region{.value = op.payload};
  shape.payload_offset = Bytes(region.slot_bytes() - bytes);
  return predict_responder(cluster, shape);
}

// A response of so many bytes, and an immediate, in one of `lists`.
Prediction predict_response(const ClusterWire& cluster, const Operation& op, int ports, std::uint32_t bytes,
                            const ListShare& lists) {
  VerbShape shape = verb_shape(op, ports);
  shape.verb = Verb::send;
  shape.transport = Transport::ud;
  shape.payload = Bytes(bytes);
  shape.inlined = bytes <= op.inline_limit;
  shape.immediate = true;
  shape.post_list = lists.length;
  shape.post_step = lists.step;
  return predict_requester(cluster, shape);
}

}  // namespace

Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                          const Json& result) {
  const StoreMix mix = store_mix(options.store, result);
  std::vector<PredictedPart> parts;
  const auto add = [&parts](const Prediction& prediction, double per_op) {
    if (per_op > 0) parts.push_back({prediction, per_op});
  };
  for (const ListShare& lists : list_shares(result.value("answers_per_post", Json()), 1)) {
    add(predict_response(cluster, op, ports, op.payload, lists), lists.answers * mix.gets);
    add(predict_response(cluster, op, ports, kStatusBytes, lists), lists.answers * (mix.misses + mix.puts));
  }
  const bool echo = options.store.accesses.has_value();  // each request has a value, as that of a PUT
  if (!options.alone) {
    add(predict_request(cluster, op, ports, options, echo ? put_bytes(op.payload) : kGetBytes), mix.gets + mix.misses);
    add(predict_request(cluster, op, ports, options, put_bytes(op.payload)), mix.puts);
  }
  return predict_together(echo ? "HERD echo" : "HERD server", parts);
}

}  // namespace verbscope::herd
