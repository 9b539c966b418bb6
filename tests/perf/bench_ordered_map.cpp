// Ordered maps side by side, with random keys: the one of ordered_kv, its B-tree alone, and the balanced tree of the
// standard library. By hand; the costs of simulated look-ups (systems/ordered/tree_model.hpp) come from it.
#include <absl/container/btree_map.h>
#include <benchmark/benchmark.h>

#include <map>

#include "systems/ordered/keys.hpp"
#include "systems/ordered/ordered_map.hpp"

namespace verbscope::ordered {
namespace {

constexpr std::uint64_t kLength = 128;  // keys of a scan

// The same calls on a map of one thread.
template <class Map>
class Alone {
 public:
  void load(std::uint64_t key, std::uint64_t value) { map_.insert_or_assign(key, value); }
  std::uint64_t get(std::uint64_t key) const { return map_.find(key)->second; }
  std::uint64_t scan(std::uint64_t first) const {
    std::uint64_t sum = 0, count = 0;
    for (auto at = map_.lower_bound(first); at != map_.end() && count < kLength; ++at, ++count) sum += at->second;
    return sum;
  }
  void put(std::uint64_t key, std::uint64_t value) { map_.insert_or_assign(key, value); }

 private:
  Map map_;
};

class Shared {
 public:
  void load(std::uint64_t key, std::uint64_t value) { map_.load(key, value); }
  std::uint64_t get(std::uint64_t key) { return *map_.get(node_, 0, key); }
  std::uint64_t scan(std::uint64_t first) { return map_.scan(node_, 0, first, kLength).values; }
  void put(std::uint64_t key, std::uint64_t value) { map_.put(node_, 0, key, value); }

 private:
  HostNode node_;
  OrderedMap map_{16};
};

// Keys of the map, in an order of their own.
template <class Map, class Use>
void measure(benchmark::State& state, Use&& use) {
  const auto keys = static_cast<std::uint64_t>(state.range(0));
  Map map;
  for (std::uint64_t i = 0; i < keys; ++i) map.load(key_of(i), i);
  std::uint64_t i = 0;
  for (auto _ : state) use(map, key_of((mix(++i) >> 32) * keys >> 32));
}

template <class Map>
void get(benchmark::State& state) {
  measure<Map>(state, [](Map& map, std::uint64_t key) { benchmark::DoNotOptimize(map.get(key)); });
}
template <class Map>
void scan(benchmark::State& state) {
  measure<Map>(state, [](Map& map, std::uint64_t key) { benchmark::DoNotOptimize(map.scan(key)); });
}
template <class Map>
void put(benchmark::State& state) {
  measure<Map>(state, [](Map& map, std::uint64_t key) { map.put(key, key); });
}

using StdMap = Alone<std::map<std::uint64_t, std::uint64_t>>;
using BTree = Alone<absl::btree_map<std::uint64_t, std::uint64_t>>;

BENCHMARK(get<Shared>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(get<BTree>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(get<StdMap>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(scan<Shared>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(scan<BTree>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(scan<StdMap>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(put<Shared>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(put<BTree>)->Arg(1000)->Arg(1'000'000);
BENCHMARK(put<StdMap>)->Arg(1000)->Arg(1'000'000);

}  // namespace
}  // namespace verbscope::ordered

BENCHMARK_MAIN();
