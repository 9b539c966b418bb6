// MICA's cache at a server's thread, which answers by datagrams: its options, how it is filled, the two accesses of an
// operation, results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lookups/mica_store.hpp"
#include "machine/node.hpp"
#include "microbench/bench/benchmark.hpp"
#include "systems/requests/server.hpp"
#include "systems/store/options.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

// Rejects invalid sizes and batches; --prefetch is resolved before. Throws UsageError.
void check_cache_options(const StoreOptions& options, const OptionTable& table);

// The cache of the thread, with the first version of each of its keys. Each value is followed by `tail` zero bytes.
lookups::MicaStore filled_cache(const ThreadSetup& setup, const StoreOptions& options, std::uint32_t tail = 0);

// Counts of a thread in the measured interval.
struct CacheServerCounts {
  PassCounts passes;
  std::uint64_t served = 0;  // requests answered
  std::uint64_t looks = 0;   // polls of slots, or of the completion queue
  std::uint64_t no_ops = 0;
};

// The results of a server thread after the run; its Workload derives from it.
struct CacheAccount {
  virtual ~CacheAccount() = default;
  virtual const lookups::MicaStore* cache() const = 0;  // null: requests are echoed
  virtual const CacheServerCounts& window_counts() const = 0;
  virtual std::uint64_t puts_executed() const = 0;
};

// As Store::server_results, check and store_report. An echo has no keys of a cache.
Json cache_results(const std::vector<const Workload*>& threads);
std::string check_cache(const Json& result);
std::string cache_text(const Json& result);

// The two accesses of an operation, bucket and item, by a thread that works on several operations and prefetches the
// memory of each. Data path.

// The offset of a byte in the second line of an item of `bytes` bytes. The core's prefetcher fetches further lines by
// itself.
constexpr std::size_t second_line_of(std::size_t bytes) {
  return std::min<std::size_t>(bytes - 1, kCacheLine.value);
}

// Reads the prefetched bucket into `found`, and prefetches the item.
template <Node N>
[[gnu::always_inline]] inline void find_and_prefetch(N& node, const lookups::MicaStore& store,
                                                     const lookups::KeyHash& key, std::size_t second_line,
                                                     lookups::MicaStore::Found& found) {
  node.load(store.bucket_place(key));
  found = store.find(key);
  const std::byte* const there = found.item;
  if (there == nullptr) return;
  node.prefetch(there);
  node.prefetch(there + second_line);
}

// Waits for the lines of an item; null: there is none.
template <Node N>
[[gnu::always_inline]] inline void load_item(N& node, const std::byte* item, std::size_t second_line) {
  if (item == nullptr) return;
  const auto line_of = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) / kCacheLine.value; };
  node.load(item);
  if (line_of(item) != line_of(item + second_line)) node.load(item + second_line);
}

}  // namespace verbscope
