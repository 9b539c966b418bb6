// The threads of the cached store as workloads.
#pragma once

#include <cstdint>
#include <memory>

#include "microbench/bench/benchmark.hpp"
#include "systems/cached/client.hpp"
#include "systems/store/options.hpp"

namespace verbscope::cached {

// The options as the store has settled them.
struct CachedOptions {
  StoreOptions store;
  std::uint32_t request_inline = 0;  // bytes of a request that are inlined
  std::uint32_t client_threads = 1;  // of all machines, as far as is known before the run
};

// What a client's thread tells of its GETs beside its book.
struct CachedAccount {
  virtual ~CachedAccount() = default;
  virtual const ClientState& state() const = 0;
};

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const CachedOptions& options);
std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const CachedOptions& options);

}  // namespace verbscope::cached
