// What key-value stores share: the popularity of keys, values that name their PUT, and what a client takes for right.
#include "systems/store/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "systems/store/cache.hpp"
#include "systems/store/client_oracle.hpp"
#include "systems/store/workload.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

// The shares that the law says: r^-s over the sum of all.
TEST(Zipf, TheFirstRanksHaveTheirShares) {
  for (const double exponent : {0.5, 0.99, 1.0, 1.3}) {
    constexpr std::uint64_t kCount = 1000, kDraws = 400'000;
    double sum = 0;
    for (std::uint64_t r = 1; r <= kCount; ++r) sum += std::pow(static_cast<double>(r), -exponent);
    const Zipf zipf(kCount, exponent);
    std::vector<double> drawn(kCount);
    for (std::uint64_t i = 0; i < kDraws; ++i) ++drawn.at(zipf.rank(mix(i)));
    for (const std::uint64_t r : {1u, 2u, 3u, 4u, 10u, 100u}) {
      const double expected = kDraws * std::pow(static_cast<double>(r), -exponent) / sum;
      EXPECT_NEAR(drawn[r - 1], expected, 5 * std::sqrt(expected)) << exponent << ", rank " << r;
    }
  }
}

TEST(Zipf, OneThingHasRankZero) {
  const Zipf zipf(1, 0.99);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(zipf.rank(mix(i)), 0u);
}

StoreOptions options_of(std::uint64_t keys, std::uint32_t puts) {
  StoreOptions options;
  options.keys = keys;
  options.put_percent = puts;
  return options;
}

TEST(StoreWorkload, IsAFunctionOfSeedClientAndNumber) {
  const StoreWorkload one(options_of(1000, 50), 7), same(options_of(1000, 50), 7), other(options_of(1000, 50), 8);
  int differ = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    EXPECT_EQ(one.op(3, n), same.op(3, n));
    differ += one.op(3, n) == other.op(3, n) ? 0 : 1;
  }
  EXPECT_GT(differ, 90);
}

TEST(StoreWorkload, HasItsShareOfPutsAndAllKeysAlike) {
  constexpr int kDraws = 100'000;
  const StoreWorkload workload(options_of(10, 5), 1);
  int puts = 0;
  std::vector<int> keys(10);
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const StoreOp op = workload.op(0, n);
    puts += op.put ? 1 : 0;
    ++keys.at(op.key);
  }
  EXPECT_NEAR(puts, 5000, 5 * std::sqrt(5000 * 0.95));
  for (const int times : keys) EXPECT_NEAR(times, 10'000, 5 * std::sqrt(10'000));
}

TEST(StoreWorkload, HashesHaveNoZeroHalfAndThreadsOwnEqualShares) {
  const StoreWorkload workload(options_of(60'000, 5), 1);
  std::vector<int> owned(6);
  for (std::uint64_t key = 0; key < 60'000; ++key) {
    const KeyHash hash = workload.hash(key);
    EXPECT_TRUE(hash.low != 0 && hash.high >> 56 != 0);
    ++owned[owner_of(hash, 6)];
  }
  for (const int keys : owned) EXPECT_NEAR(keys, 10'000, 500);
}

TEST(StoreValues, NameThePutThatWroteThem) {
  for (const std::size_t bytes : {4u, 5u, 7u, 8u, 9u, 32u, 60u, 1000u}) {
    const StoreValues values(1, bytes);
    std::vector<std::byte> value(bytes);
    for (const StoreVersion version : {StoreVersion(), StoreVersion(0, 0), StoreVersion(1599, 123'456)}) {
      values.fill(value.data(), 42, version);
      const StoreReading reading = values.read(value.data(), 42);
      EXPECT_TRUE(reading.whole) << bytes;
      EXPECT_EQ(reading.first, version) << bytes;
      EXPECT_EQ(reading.last, version) << bytes;
    }
    value.back() ^= std::byte{1};
    if (bytes <= 8) continue;  // its only word is of another version then
    EXPECT_FALSE(values.read(value.data(), 42).whole) << bytes;
  }
}

// A client of three, which is told what it gets.
struct BookEnd {
  StoreWorkload workload;
  StoreValues values;
  ClientOracle oracle;
  std::vector<std::byte> bytes;

  explicit BookEnd(std::size_t size = 32, std::uint64_t keys = 4, std::uint32_t puts = 50)
      : workload(options_of(keys, puts), 1), values(1, size), oracle(workload, values, 1, 3, 64), bytes(size) {}

  // The next operation of the client that is a PUT, or a GET, of `key`.
  StoreRequest next(bool put, std::uint64_t key) {
    for (;;) {
      StoreRequest request = oracle.draw();
      if (request.put != put || request.key != key) continue;
      oracle.ask(request, Picos(0));
      return request;
    }
  }
  StoreRequest put(std::uint64_t key) {
    const StoreRequest request = next(true, key);
    oracle.put_done(request, Picos(10), true);
    return request;
  }
  void get(std::uint64_t key, StoreVersion version) { got(next(false, key), version); }
  void got(const StoreRequest& request, StoreVersion version) {
    values.fill(bytes.data(), request.key, version);
    oracle.hit(request, bytes.data(), bytes.size(), Picos(10), true);
  }
  // The `nth` PUT of `key` of another client.
  StoreVersion other(std::uint64_t key, int nth) const {
    for (std::uint64_t number = 0;; ++number) {
      if (workload.op(2, number) == StoreOp{key, true} && nth-- == 0) return {2, number};
    }
  }
  StoreVersion of(const StoreRequest& request) const { return {1, request.number}; }
};

TEST(ClientOracle, AcceptsValuesOfPutsOfTheKey) {
  for (const std::size_t size : {4u, 8u, 32u, 1000u}) {
    BookEnd end(size);
    end.get(0, StoreVersion());
    end.get(0, end.other(0, 0));
    EXPECT_EQ(end.oracle.counts.wrong, 0u) << size;
    EXPECT_EQ(end.oracle.counts.checked, 2u);
    EXPECT_EQ(end.oracle.get_latency.count(), 2u);
  }
}

TEST(ClientOracle, RefusesMoreClientThreadsThanAValueCanName) {
  const StoreValues small(1, 4), large(1, 8);
  const Topology fits{.clients = 273, .client_threads = 15}, exceeds{.clients = 512, .client_threads = 8};
  EXPECT_NO_THROW(check_writers(fits, small));
  EXPECT_NO_THROW(check_writers(exceeds, large));
  try {
    check_writers(exceeds, small);
    FAIL() << "4096 client threads";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--clients 512, 4096 client threads"));
    EXPECT_THAT(error.what(), HasSubstr("at most 4095"));
  }
}

TEST(ClientOracle, RejectsOtherValues) {
  BookEnd end;
  end.get(0, end.other(1, 0));     // a PUT of another key
  end.get(0, StoreVersion(3, 0));  // there is no such client
  const StoreRequest request = end.next(false, 0);
  end.values.fill(end.bytes.data(), 1, StoreVersion());  // the value of another key
  end.oracle.hit(request, end.bytes.data(), 32, Picos(0), true);
  end.oracle.hit(end.next(false, 0), end.bytes.data(), 31, Picos(0), true);
  EXPECT_EQ(end.oracle.counts.wrong, 4u);
}

TEST(ClientOracle, DetectsATornValue) {
  BookEnd end;
  const StoreRequest request = end.next(false, 0);
  std::vector<std::byte> newer(32);
  end.values.fill(end.bytes.data(), 0, StoreVersion());
  end.values.fill(newer.data(), 0, end.other(0, 0));
  std::copy_n(newer.begin(), 16, end.bytes.begin());
  end.oracle.hit(request, end.bytes.data(), 32, Picos(0), true);
  EXPECT_EQ(end.oracle.counts.torn, 1u);
  EXPECT_EQ(end.oracle.counts.wrong, 0u);
}

TEST(ClientOracle, RejectsValuesOlderThanAnAcknowledgedPut) {
  for (const std::size_t size : {4u, 32u}) {
    BookEnd end(size);
    const StoreRequest first = end.put(0);
    end.get(0, end.other(0, 0));
    const StoreRequest second = end.put(0);
    end.get(0, end.of(second));
    end.get(0, end.other(0, 1));  // may be newer
    EXPECT_EQ(end.oracle.counts.stale, 0u);
    EXPECT_EQ(end.oracle.counts.own_checked, 3u);
    end.get(0, StoreVersion());
    EXPECT_EQ(end.oracle.counts.stale, 1u);
    end.get(0, end.of(first));
    EXPECT_EQ(end.oracle.counts.stale, 2u);
    end.get(0, end.other(0, 0));  // was seen before the PUT was asked for
    EXPECT_EQ(end.oracle.counts.stale, 3u) << size;
    EXPECT_EQ(end.oracle.counts.wrong, 0u);
  }
}

TEST(ClientOracle, AGetSentBeforeThePutCompletedMayMissIt) {
  BookEnd end;
  StoreRequest put = end.next(true, 0);
  const StoreRequest get = end.next(false, 0);
  end.oracle.put_done(put, Picos(5), true);
  end.got(get, StoreVersion());
  EXPECT_EQ(end.oracle.counts.stale, 0u);
}

TEST(ClientOracle, BeginsTheIntervalWithZeroCounts) {
  BookEnd end;
  end.put(0);
  end.oracle.missed(end.next(false, 0), Picos(5), true);
  EXPECT_EQ(end.oracle.counts.window_gets + end.oracle.counts.window_puts + end.oracle.counts.window_misses, 3u);
  end.oracle.begin_interval();
  EXPECT_EQ(end.oracle.counts.window_gets + end.oracle.counts.window_puts + end.oracle.counts.window_misses, 0u);
  EXPECT_EQ(end.oracle.put_latency.count(), 0u);
  EXPECT_EQ(end.oracle.done(), 2u);
}

Json found_nothing(std::uint64_t clients, std::uint64_t no_slot, std::uint64_t never_lost) {
  return {{"misses", clients},
          {"failed_gets", {{"no_slot", no_slot}, {"other_key", 1}, {"log_lost", 1}, {"never_lost", never_lost}}}};
}

TEST(CacheJudge, ClientsMissOnlyKeysThatTheCacheEvicted) {
  EXPECT_EQ(check_cache(found_nothing(12, 10, 0)), "");
  EXPECT_EQ(check_cache(found_nothing(9, 10, 0)), "");  // three were asked again
  EXPECT_THAT(check_cache(found_nothing(13, 10, 0)), AllOf(HasSubstr("13 GETs"), HasSubstr("12 at the server")));
  EXPECT_THAT(check_cache(found_nothing(12, 10, 2)), AllOf(HasSubstr("2 GETs"), HasSubstr("never evicted")));
  EXPECT_EQ(check_cache(Json::object()), "");  // an echo
}

}  // namespace
}  // namespace verbscope
