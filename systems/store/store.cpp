#include "systems/store/store.hpp"

#include <algorithm>

#include "common/record.hpp"
#include "microbench/bench/options.hpp"
#include "systems/rpc/peers.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kRequestInline = 256;  // bytes, as section 5.3 inlines requests

}  // namespace

void settle_clients(Options& common) {
  if (!is_simulated(common.fabric)) return;
  common.clients = common.clients.value_or(kPaperMachines);
  common.client_threads = common.client_threads.value_or(kPaperThreads);
}

std::uint32_t settle_inlining(Options& common, const OptionTable& table) {
  if (!table.given("--inline_size")) common.inline_size = kResponseInline;
  return common.inline_size == 0 ? 0 : std::max(common.inline_size, kRequestInline);
}

double sum_over_clients(const Json& result, const std::string& key) {
  double sum = 0;
  for (const Json& client : result.at("clients")) {
    sum += static_cast<double>(
        JsonFields(client.at("result"), "result of " + client.value("node", "")).require<std::uint64_t>(key));
  }
  return sum;
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

ClientOracleParts::ClientOracleParts(const ThreadSetup& setup, const StoreOptions& options)
    : workload(options, setup.operation.seed),
      oracle(workload, StoreValues(setup.operation.seed, setup.operation.payload), number_of_client(setup),
             setup.topology.all_client_threads(),
             oracle_places(options.keys, options.one_process ? setup.topology.all_client_threads()
                                                             : setup.topology.client_threads)) {}

}  // namespace verbscope
