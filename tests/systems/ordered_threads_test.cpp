// Readers, scanners and writers of one ordered map at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/hash.hpp"
#include "systems/ordered/keys.hpp"
#include "systems/ordered/ordered_map.hpp"

namespace verbscope::ordered {
namespace {

constexpr std::uint64_t kRounds = 3000;

// The second key follows the first in the same partition: a scan that sees a PUT to the second sees the one before it,
// to the first.
TEST(OrderedThreads, ScanSeesAPartitionAtOneMoment) {
  OrderedMap map(4);
  constexpr std::uint64_t kFirst = 1000, kSecond = 2000;
  constexpr std::uint64_t kSecondUnit = std::uint64_t{1} << 32;  // so that the sum tells both versions
  map.load(kFirst, 0);
  map.load(kSecond, 0);
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> torn = 0, scans = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        HostNode node;
        while (!over) {
          const OrderedMap::Sum sum = map.scan(node, thread, kFirst, 2);
          const std::uint64_t first = sum.values % kSecondUnit, second = sum.values / kSecondUnit;
          if (sum.count != 2 || first < second || first > second + 1) ++torn;
          ++scans;
        }
      });
    }
    threads.emplace_back([&] {  // new keys between the two change the tree, but not the sum of the first two
      HostNode node;
      for (std::uint64_t i = 0; i < kRounds; ++i) map.put(node, 2, kSecond + 1 + mix(i) % 100'000, i);
    });
    HostNode node;
    for (std::uint64_t version = 1; version <= kRounds; ++version) {
      map.put(node, 3, kFirst, version);
      map.put(node, 3, kSecond, version * kSecondUnit);
    }
    threads.pop_back();
    over = true;
  }
  EXPECT_EQ(torn, 0);
  EXPECT_GT(scans, 0);
}

// Each writer raises the versions of its own keys: a reader sees no version twice after a later one, and in the end
// each key has its last.
TEST(OrderedThreads, NoPutIsLostAndNoReadIsOlderThanTheLast) {
  constexpr std::uint64_t kKeys = 64;
  OrderedMap map(4);
  for (std::uint64_t i = 0; i < kKeys; ++i) map.load(key_of(i), 0);
  std::atomic<int> writers = 2;
  std::atomic<std::uint64_t> back = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        HostNode node;
        for (std::uint64_t i = 0; i < 20 * kRounds; ++i) {
          const std::uint64_t number = 2 * (mix(i) % (kKeys / 2)) + thread;
          const std::uint64_t before = *map.get(node, thread, key_of(number));
          map.put(node, thread, key_of(number), before + 1);
        }
        --writers;
      });
      threads.emplace_back([&, thread] {
        HostNode node;
        std::vector<std::uint64_t> seen(kKeys);
        for (std::uint64_t i = 0; writers > 0; ++i) {
          const std::uint64_t number = mix(i) % kKeys;
          const std::uint64_t value = *map.get(node, 2 + thread, key_of(number));
          if (value < seen[number]) ++back;
          seen[number] = value;
        }
      });
    }
  }
  HostNode node;
  EXPECT_EQ(back, 0);
  EXPECT_EQ(map.scan(node, 0, 0, kKeys).values, 2 * 20 * kRounds);
}

}  // namespace
}  // namespace verbscope::ordered
