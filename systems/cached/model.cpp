#include "systems/cached/model.hpp"

#include <vector>

#include "pcie_model/predict.hpp"
#include "systems/store/datagrams.hpp"
#include "systems/store/store.hpp"

namespace verbscope::cached {

namespace {

// Shares of all GETs.
struct GetShares {
  double known = 0, confirmed = 0;
};

GetShares get_shares(const CachedOptions& options, const Json& result) {
  const double gets = result.contains("clients") ? sum_over_clients(result, "window_gets") : 0;
  if (gets > 0) {
    return {.known = sum_over_clients(result, "window_known") / gets,
            .confirmed = sum_over_clients(result, "window_confirmed") / gets};
  }
  const double kept = options.store.cached_share / 100.0;
  return {.known = kept,
          .confirmed = kept * confirmed_share(options.store.put_percent / 100.0, options.client_threads)};
}

}  // namespace

double confirmed_share(double put_share, double clients) {
  return 1 / (1 + put_share * (clients - 1));
}

Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const CachedOptions& options,
                          const Json& result) {
  const StoreMix mix = store_mix(options.store, result);
  const double gets = mix.gets + mix.misses;
  const GetShares shares = get_shares(options, result);
  std::vector<PredictedPart> parts = predict_responses(cluster, op, ports,
                                                       {{item_bytes(op.payload), mix.gets - gets * shares.confirmed},
                                                        {kStatusBytes, mix.misses},
                                                        {0, gets * shares.confirmed + mix.puts}},
                                                       result.value("answers_per_post", Json()));
  const auto add_request = [&](std::uint32_t bytes, double per_op) {
    if (per_op > 0) parts.push_back({predict_request_datagram(cluster, op, ports, bytes), per_op});
  };
  if (options.store.small_keys) {
    add_request(0, gets);
  } else {
    add_request(kGetBytes, gets * (1 - shares.known));
    add_request(kKnownGetBytes, gets * shares.known);
    add_request(put_bytes(op.payload), mix.puts);
  }
  return predict_together("cached server", parts);
}

}  // namespace verbscope::cached
