// HERD, a key-value cache (Kalia, Kaminsky and Andersen, SIGCOMM 2014; Kalia et al., ATC 2016, section 4.3.1), as a
// store of kv_rate: requests by UC WRITE, or by SEND, responses by UD SEND, MICA's cache at the server.
#pragma once

#include <cstdint>
#include <memory>

#include "microbench/bench/benchmark.hpp"
#include "pcie_model/predict.hpp"
#include "systems/herd/message.hpp"
#include "systems/requests/request_slots.hpp"
#include "systems/store/store.hpp"

namespace verbscope::herd {

// The options with their defaults resolved.
struct HerdOptions {
  StoreOptions store;
  bool self_fed = false;             // the null device: the server's threads write requests to themselves
  std::uint32_t request_inline = 0;  // largest request that is inlined, in bytes
  std::uint64_t echo_bytes = 0;      // with StoreOptions::accesses: memory that a thread of the server reads in
};

// The slots of requests by WRITE.
SlotLayout slot_layout(const HerdOptions& options, std::uint32_t servers, std::uint32_t clients, std::uint32_t value);

EchoRule echo_rule(const HerdOptions& options, std::uint64_t seed);

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const HerdOptions& options);
std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const HerdOptions& options);

// The closed-form model of the server: requests that arrive and responses that leave, with the mix and the lists of
// `result`, if it has them.
Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                          const Json& result);

}  // namespace verbscope::herd

namespace verbscope {

std::unique_ptr<Store> make_herd_store(StoreOptions& options, const OptionTable& table);

}  // namespace verbscope
