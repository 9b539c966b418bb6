#include "systems/store/store.hpp"

#include "systems/answers/ports.hpp"

namespace verbscope {

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

StoreBookParts::StoreBookParts(const ThreadSetup& setup, const StoreOptions& options)
    : workload(options, setup.operation.seed),
      book(workload, StoreValues(setup.operation.seed, setup.operation.payload), number_of_client(setup),
           setup.topology.all_client_threads(),
           book_places(options.keys,
                       options.one_process ? setup.topology.all_client_threads() : setup.topology.client_threads)) {}

}  // namespace verbscope
