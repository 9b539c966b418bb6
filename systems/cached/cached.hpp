// A key-value store whose clients cache values and revalidate them, as a store of kv_rate (after Kalia et al., ATC
// 2016, section 5.2.2): requests and responses by UD SEND, MICA's cache at the server.
#pragma once

#include <cstdint>
#include <memory>

#include "microbench/bench/benchmark.hpp"
#include "pcie_model/predict.hpp"
#include "systems/store/options.hpp"
#include "systems/store/store.hpp"

namespace verbscope::cached {

// The options with their defaults resolved.
struct CachedOptions {
  StoreOptions store;
  std::uint32_t request_inline = 0;  // largest request that is inlined, in bytes
  std::uint32_t client_threads = 1;  // of all machines, as far as the options set them
};

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const CachedOptions& options);
std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const CachedOptions& options);

// The closed-form model.

// The share of the GETs of cached keys that are confirmed, in steady state, if all `clients` send the same mix: GETs
// whose client did the last operation on the key, or the last PUT before only GETs.
double confirmed_share(double put_share, double clients);

// Requests that arrive and responses that leave, with the mix and the lists of `result`, if it has them.
Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const CachedOptions& options,
                          const Json& result);

}  // namespace verbscope::cached

namespace verbscope {

std::unique_ptr<Store> make_cached_store(StoreOptions& options, const OptionTable& table);

}  // namespace verbscope
