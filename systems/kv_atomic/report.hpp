// The results of the ends of kv_atomic, for the record and for the console; keys carry units.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// The results of the threads of one node. Latencies are in it twice: as percentiles, and packed for merging.
Json kv_results(const std::vector<const Workload*>& threads);

// Requests per operation at the server: READs of values (torn ones too), PUTs, and READs of locks by waiting clients.
struct KvMix {
  double gets = 0;
  double puts = 0;
  double looks = 0;
};
// The mix of the measured interval, from a result at the server that has those of all clients. Nothing if no operation
// ended in the interval.
std::optional<KvMix> kv_mix(const Json& result);

// At the server, with the results of all clients in place: adds the sums and latencies of all clients and the lock
// slots. Sets outcome.failure if the clients' counts contradict the records of the store.
void kv_finish(Outcome& outcome);

// Lines for the console, from the result at the server; empty at a client.
std::string kv_text(const Json& result);

}  // namespace verbscope
