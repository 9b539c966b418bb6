// The results of the ends of kv_atomic, for the record and for the console; keys carry units.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// The results of the threads of one node. Latencies stand in it as percentiles, and packed, to be merged.
Json kv_results(const std::vector<const Workload*>& threads);

// The requests of an average operation to the server: READs of values, those that were torn among them, PUTs, and READs
// of locks by those who wait.
struct KvMix {
  double gets = 0;
  double puts = 0;
  double looks = 0;
};
// The mix of the measured window, at the server with the results of all clients in place; none when no operation ended
// in it.
std::optional<KvMix> kv_mix(const Json& result);

// At the server, with the results of all clients in place: puts sums and latencies of all clients into the result, and
// what is known of the lock slots. Sets outcome.failure when what the clients did is not what the records say.
void kv_finish(Outcome& outcome);

// Lines for the console, from the result at the server; empty at a client.
std::string kv_text(const Json& result);

}  // namespace verbscope
