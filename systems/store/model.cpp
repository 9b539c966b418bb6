#include "systems/store/model.hpp"

#include <numeric>

#include "microbench/loop/batch_counts.hpp"
#include "pcie_model/costs.hpp"
#include "systems/requests/server.hpp"

namespace verbscope {

namespace {

VerbShape datagram_shape(const Operation& op, int ports, std::uint64_t bytes) {
  VerbShape shape = verb_shape(op, ports);
  shape.verb = Verb::send;
  shape.transport = Transport::ud;
  shape.payload = Bytes(bytes);
  shape.inlined = bytes > 0 && bytes <= op.inline_limit;
  shape.immediate = true;
  return shape;
}

int lines_of(const ClusterWire& cluster, const VerbShape& shape) {
  return wqe_size(cluster.family, shape.verb, shape.transport, shape.payload, shape.inlined).lines();
}

}  // namespace

Prediction predict_request_datagram(const ClusterWire& cluster, const Operation& op, int ports, std::uint64_t bytes) {
  VerbShape shape = datagram_shape(op, ports, bytes);
  shape.post_list = static_cast<int>(kRequestRecvList);
  return predict_receiver(cluster, shape);
}

std::vector<PredictedPart> predict_responses(const ClusterWire& cluster, const Operation& op, int ports,
                                             const std::vector<Responses>& kinds, const Json& answers_per_post) {
  const auto lines = [&](const Responses& kind) { return lines_of(cluster, datagram_shape(op, ports, kind.bytes)); };
  int common = 0;  // lines that divide the WQEs of all kinds
  bool mixed = false;
  for (const Responses& kind : kinds) {
    if (kind.per_op <= 0) continue;
    mixed = mixed || (common > 0 && lines(kind) != common);
    common = std::gcd(common, lines(kind));
  }
  std::vector<PredictedPart> parts;
  for (const Responses& kind : kinds) {
    if (kind.per_op <= 0) continue;
    VerbShape shape = datagram_shape(op, ports, kind.bytes);
    if (mixed) shape.begin_blocks = common;
    for (const ListShare& lists : list_shares(answers_per_post, 1)) {
      shape.post_list = lists.length;
      shape.post_step = lists.step;
      parts.push_back({predict_requester(cluster, shape), lists.answers * kind.per_op});
    }
  }
  return parts;
}

StoreMix store_mix(const StoreOptions& options, const Json& result) {
  const double puts = options.put_percent / 100.0;
  const StoreMix drawn{.gets = 1 - puts, .puts = puts};
  if (!result.contains("clients")) return drawn;
  double all_gets = 0, all_misses = 0, all_puts = 0;
  for (const Json& client : result.at("clients")) {
    const Json& theirs = client.at("result");
    all_gets += theirs.value("window_gets", 0.0);
    all_misses += theirs.value("window_misses", 0.0);
    all_puts += theirs.value("window_puts", 0.0);
  }
  const double all = all_gets + all_puts;
  if (all <= 0) return drawn;
  return {.gets = (all_gets - all_misses) / all, .misses = all_misses / all, .puts = all_puts / all};
}

}  // namespace verbscope
