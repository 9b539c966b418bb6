// The threads of HERD as workloads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "systems/herd/region.hpp"
#include "systems/herd/server.hpp"
#include "systems/store/options.hpp"

namespace verbscope::herd {

// The options as HERD has settled them.
struct HerdOptions {
  StoreOptions store;
  bool alone = false;                // the null device: the server's threads find requests that nobody sent
  std::uint32_t request_inline = 0;  // bytes of a request that are inlined
  std::uint64_t echo_bytes = 0;      // with StoreOptions::accesses: memory that a thread of the server reads in
};

// The region of the server, for requests by WRITE.
RequestRegion request_region(const HerdOptions& options, std::uint32_t servers, std::uint32_t clients,
                             std::uint32_t value);

// What both ends know of the walks, where the server echoes.
EchoRule echo_rule(const HerdOptions& options, std::uint64_t seed);

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const HerdOptions& options);
std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const HerdOptions& options);

}  // namespace verbscope::herd
