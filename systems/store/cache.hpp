// MICA's cache at a server's thread, which answers by datagrams: its options, how it is filled, what it tells after the
// run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lookups/mica_store.hpp"
#include "microbench/bench/benchmark.hpp"
#include "systems/rpc/server.hpp"
#include "systems/store/options.hpp"

namespace verbscope {

// Refuses sizes and batches that a cache's server cannot have; prefetching is settled before. Throws UsageError.
void check_cache_options(const StoreOptions& options, const OptionTable& table);

// The cache of the thread, with the first version of each of its keys. Behind the bytes of each value stand `tail`
// more, all 0.
lookups::MicaStore filled_cache(const ThreadSetup& setup, const StoreOptions& options, std::uint32_t tail = 0);

// A thread's counts of the measured window.
struct CacheServerCounts {
  PassCounts passes;
  std::uint64_t served = 0;  // requests answered
  std::uint64_t looks = 0;   // at slots, or for completions
  std::uint64_t no_ops = 0;
};

// The account of a server's thread after the run; its Workload derives from it.
struct CacheAccount {
  virtual ~CacheAccount() = default;
  virtual const lookups::MicaStore* cache() const = 0;  // null: requests are echoed
  virtual const CacheServerCounts& window_counts() const = 0;
  virtual std::uint64_t puts_executed() const = 0;
};

// As Store::server_results, judge and report. Without a cache there are no keys of one.
Json cache_results(const std::vector<const Workload*>& threads);
std::string judge_cache(const Json& result);
std::string cache_text(const Json& result);

}  // namespace verbscope
