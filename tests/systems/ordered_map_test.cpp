// The ordered map against std::map, what its trees cost a simulated machine, and what callers accept as answers.
#include "systems/ordered/ordered_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "nic_sim/cluster.hpp"
#include "nic_sim/host/sim_node.hpp"
#include "systems/ordered/caller.hpp"
#include "tests/lookups/simulated_time.hpp"
#include "tests/verbs/count_allocations.hpp"

namespace verbscope::ordered {
namespace {

constexpr Bytes kLarge{std::uint64_t{1} << 40};

OrderedMap::Sum expected_scan(const std::map<std::uint64_t, std::uint64_t>& map, std::uint64_t first,
                              std::uint64_t length) {
  OrderedMap::Sum sum;
  for (auto at = map.lower_bound(first); at != map.end() && sum.count < length; ++at) {
    sum = {sum.count + 1, sum.keys + at->first, sum.values + at->second};
  }
  return sum;
}

TEST(OrderedMap, AgreesWithStdMap) {
  OrderedMap map(1);
  std::map<std::uint64_t, std::uint64_t> same;
  HostNode node;
  std::mt19937_64 random(7);
  // Half of the keys lie close together, so that puts overwrite and scans find neighbours.
  const auto draw_key = [&random] { return random() % 2 == 0 ? random() : random() % 2000; };
  for (int i = 0; i < 50'000; ++i) {
    const std::uint64_t key = draw_key(), value = random();
    switch (random() % 4) {
      case 0: {
        const std::uint64_t length = random() % 300;
        const OrderedMap::Sum sum = map.scan(node, 0, key, length), expected = expected_scan(same, key, length);
        ASSERT_EQ(sum.count, expected.count) << key << " " << length;
        ASSERT_EQ(sum.keys, expected.keys);
        ASSERT_EQ(sum.values, expected.values);
        break;
      }
      case 1:
        ASSERT_EQ(map.put(node, 0, key, value), same.insert_or_assign(key, value).second);
        break;
      default: {
        const auto found = same.find(key);
        ASSERT_EQ(map.get(node, 0, key), found == same.end() ? std::nullopt : std::optional(found->second));
      }
    }
  }
}

TEST(OrderedMap, ScansOverAllPartitions) {
  OrderedMap map(1);
  std::map<std::uint64_t, std::uint64_t> same;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    map.load(key_of(i), i);
    same[key_of(i)] = i;
  }
  HostNode node;
  EXPECT_EQ(map.scan(node, 0, 0, 1000).keys, expected_scan(same, 0, 1000).keys);
  EXPECT_EQ(map.scan(node, 0, 0, 5000).count, 1000);
  EXPECT_EQ(map.scan(node, 0, ~std::uint64_t{0}, 10).count, same.contains(~std::uint64_t{0}) ? 1 : 0);
  EXPECT_EQ(map.scan(node, 0, 0, 0).count, 0);
}

#ifdef VERBSCOPE_COUNT_ALLOCATIONS
TEST(OrderedMap, ReadsAllocateNothing) {
  OrderedMap map(1);
  for (std::uint64_t i = 0; i < 10'000; ++i) map.load(key_of(i), i);
  HostNode node;
  std::uint64_t sum = 0;
  const std::size_t before = allocations_of_this_thread();
  for (std::uint64_t i = 0; i < 10'000; ++i)
    sum += *map.get(node, 0, key_of(i)) + map.scan(node, 0, key_of(i), 3).count;
  EXPECT_EQ(allocations_of_this_thread(), before);
  EXPECT_GT(sum, 0);
}
#endif

void load(OrderedMap& map, std::uint64_t keys, Bytes cache) {
  for (std::uint64_t i = 0; i < keys; ++i) map.load(key_of(i), i);
  map.end_load(cache);
}

// The closed form knows the number of keys only; the map counts its nodes.
TEST(TreeModel, HasTheShapeOfRealTrees) {
  for (const std::uint64_t keys : {100'000, 1'000'000}) {
    OrderedMap map(1);
    load(map, keys, kLarge);
    const TreeShape& real = map.shape();
    const TreeShape model = modelled_shape(keys, OrderedMap::kPartitions);
    EXPECT_EQ(model.levels, real.levels) << keys;
    EXPECT_NEAR(static_cast<double>(model.leaves) / static_cast<double>(real.leaves), 1, 0.05) << keys;
    EXPECT_NEAR(static_cast<double>(model.bytes().value) / static_cast<double>(real.bytes().value), 1, 0.05) << keys;
    for (const std::uint64_t cache_mb : {1, 4, 20, 100}) {
      EXPECT_EQ(model.dram_levels(Bytes(cache_mb << 20)), real.dram_levels(Bytes(cache_mb << 20)))
          << keys << " keys, " << cache_mb << " MB";
    }
  }
}

// By hand: 1,000 leaves of 256 bytes, 77 nodes of 384 above them, 6 above these, and the root.
TEST(TreeModel, CountsTheLevelsThatDoNotFit) {
  const TreeShape shape{.trees = 1, .levels = 4, .leaves = 1000, .inner_nodes = 84};
  EXPECT_EQ(shape.dram_levels(Bytes(300'000)), 0);
  EXPECT_EQ(shape.dram_levels(Bytes(288'255)), 1);
  EXPECT_EQ(shape.dram_levels(Bytes(33'000)), 1);
  EXPECT_EQ(shape.dram_levels(Bytes(30'000)), 2);
  EXPECT_EQ(shape.dram_levels(Bytes(1'000)), 3);
  EXPECT_EQ(shape.dram_levels(Bytes(1)), 4);
}

// The time of the map's own walk, beside the closed form of an ideal tree with as many keys.
TEST(TreeModel, GivesTheTimeOfSimulatedLookUps) {
  constexpr std::uint64_t kKeys = 1'000'000, kLength = 128;
  constexpr int kTimes = 200;
  OrderedMap map(1);
  load(map, kKeys, kLarge);
  for (const std::uint64_t cache_mb : {1, 20, 100}) {
    const Bytes cache(cache_mb << 20);
    map.end_load(cache);
    const TreeShape model = modelled_shape(kKeys, OrderedMap::kPartitions);
    for (const Picos dram : {Picos(Nanos(90)), Picos(Nanos(300))}) {
      const Picos get = test::simulated_time([&](SimNode& node) { map.get(node, 0, key_of(5)); }, dram);
      EXPECT_EQ(get, modelled_get(model, cache, dram)) << cache_mb;
      const Picos scans = test::simulated_time(
          [&](SimNode& node) {
            for (std::uint64_t i = 0; i < kTimes; ++i) map.scan(node, 0, key_of(i), kLength);
          },
          dram);
      const double expected = to_seconds(modelled_scan(model, cache, dram, kLength));
      EXPECT_NEAR(to_seconds(scans) / kTimes / expected, 1, 0.05) << cache_mb;
    }
  }
}

// A scan in a worker holds up a PUT to the same partition until it is over, and no other.
TEST(OrderedMap, SimulatedPutWaitsForAScanOfItsPartition) {
  OrderedMap map(2);
  load(map, 100'000, Bytes(1));
  Profile profile = load_profile("cx3");
  SimCluster cluster(profile, 1, 1);
  Picos scanned{0}, near{0}, far{0};
  cluster.add_thread(0, 0, [&](SimNode& node) {
    map.scan(node, 0, 0, 1000);
    scanned = node.now();
  });
  cluster.add_thread(0, 1, [&](SimNode& node) {
    node.compute(Nanos(100));
    node.poll_memory();
    map.put(node, 1, ~std::uint64_t{0}, 1);
    far = node.now();
    map.put(node, 1, 1, 1);
    near = node.now();
  });
  cluster.run();
  EXPECT_LT(far, scanned);
  EXPECT_GT(near, scanned);
}

std::shared_ptr<const KeyTable> table(std::uint64_t keys) {
  return std::make_shared<const KeyTable>(keys);
}

// Answers of a right store, to the requests of one caller.
Response right_answer(const std::map<std::uint64_t, std::uint64_t>& store, const Asked& asked, const Request& request) {
  Response response{.tag = request.tag | kResponseMark};
  if (asked.kind == kPut) return {response.tag, 1, request.key, request.value};
  const OrderedMap::Sum sum = expected_scan(store, request.key, request.length);
  return {response.tag, sum.count, sum.keys, sum.values};
}

TEST(OrderedCaller, AcceptsRightAnswersAndNoOthers) {
  for (const Mix& mix : {Mix{99, 1, 0, 128}, Mix{50, 20, 30, 10}, Mix{0, 0, 100, 1}}) {
    constexpr std::uint64_t kKeys = 500;
    Caller caller(table(kKeys), mix, {4, 3}, 11);
    std::map<std::uint64_t, std::uint64_t> store;
    for (std::uint64_t i = 0; i < kKeys; ++i) store[key_of(i)] = value_of(key_of(i), 0);
    std::map<std::uint8_t, int> asked_of;
    for (std::uint64_t tag = 1; tag < 5000; ++tag) {
      Asked asked;
      const Request request = caller.ask(tag, asked);
      ++asked_of[asked.kind];
      const Response right = right_answer(store, asked, request);
      for (std::uint64_t Response::*word : {&Response::tag, &Response::count, &Response::keys, &Response::values}) {
        Response wrong = right;
        ++(wrong.*word);
        EXPECT_FALSE(caller.good(asked, tag, wrong)) << tag;
      }
      EXPECT_TRUE(caller.good(asked, tag, right)) << tag;
      if (asked.kind == kPut) store[request.key] = request.value;
    }
    EXPECT_NEAR(asked_of[kScan], 50 * mix.scans, 120);
    EXPECT_NEAR(asked_of[kPut], 50 * mix.puts, 120);
  }
}

// After the answer to a PUT, the value before it is wrong.
TEST(OrderedCaller, FindsStaleValuesOfItsOwnKeys) {
  Caller caller(table(1), {0, 0, 100, 1}, {1, 0}, 1);
  Asked asked;
  const Request put = caller.ask(1, asked);
  ASSERT_EQ(asked.kind, kPut);
  Asked before;
  const Request early = caller.ask(2, before);
  ASSERT_EQ(before.kind, kGet) << "the key waits for a PUT";
  const Response old{2 | kResponseMark, 1, early.key, value_of(early.key, 0)};
  EXPECT_TRUE(caller.good(before, 2, old)) << "the PUT may come after it";
  EXPECT_TRUE(caller.good(asked, 1, {1 | kResponseMark, 1, put.key, put.value}));
  Caller reader(table(1), {100, 0, 0, 1}, {1, 0}, 1);
  Asked get;
  const Request request = reader.ask(3, get);
  EXPECT_TRUE(reader.good(get, 3, {3 | kResponseMark, 1, request.key, value_of(request.key, 0)}));
  EXPECT_FALSE(reader.good(get, 3, {3 | kResponseMark, 1, request.key, put.value})) << "nobody writes";
  const Request again = caller.ask(4, asked);
  ASSERT_EQ(asked.kind, kPut);
  EXPECT_TRUE(caller.good(asked, 4, {4 | kResponseMark, 1, again.key, again.value}));
  EXPECT_FALSE(caller.good(asked, 4, {4 | kResponseMark, 1, again.key, put.value}));
}

}  // namespace
}  // namespace verbscope::ordered
