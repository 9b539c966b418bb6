#include "systems/herd/model.hpp"

#include <vector>

#include "pcie_model/predict.hpp"
#include "systems/herd/region.hpp"
#include "systems/store/datagrams.hpp"

namespace verbscope::herd {

namespace {

// A request of so many bytes, which by WRITE ends where its slot ends.
Prediction predict_request(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                           std::uint64_t bytes) {
  if (options.store.requests_by_send) return predict_request_datagram(cluster, op, ports, bytes);
  VerbShape shape = verb_shape(op, ports);
  shape.payload = Bytes(bytes);
  shape.inlined = bytes <= options.request_inline;
  shape.max_inline_cap = Bytes(options.request_inline);
  const RequestRegion region{.value = op.payload};
  shape.payload_offset = Bytes(region.slot_bytes() - bytes);
  return predict_responder(cluster, shape);
}

}  // namespace

Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                          const Json& result) {
  const StoreMix mix = store_mix(options.store, result);
  std::vector<PredictedPart> parts =
      predict_responses(cluster, op, ports, {{op.payload, mix.gets}, {kStatusBytes, mix.misses + mix.puts}},
                        result.value("answers_per_post", Json()));
  const auto add = [&parts](const Prediction& prediction, double per_op) {
    if (per_op > 0) parts.push_back({prediction, per_op});
  };
  const bool echo = options.store.accesses.has_value();  // each request has a value, as that of a PUT
  if (!options.alone) {
    add(predict_request(cluster, op, ports, options, echo ? put_bytes(op.payload) : kGetBytes), mix.gets + mix.misses);
    add(predict_request(cluster, op, ports, options, put_bytes(op.payload)), mix.puts);
  }
  return predict_together(echo ? "HERD echo" : "HERD server", parts);
}

}  // namespace verbscope::herd
