// Keys of objects that are created and destroyed during a long run.
#include "drivers_patch/lookup.hpp"

#include <gtest/gtest.h>
#include <time.h>

namespace verbscope::driver {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Each place of the table has had a key that was erased: a search for an unknown key still ends soon.
// A search through all places would take a thousand times as long.
TEST(DriverLookup, MissesAnUnknownKeyQuickly) {
  Lookup lookup;
  ASSERT_TRUE(lookup.open());
  int value = 0;
  for (std::uint64_t key = 16; key < 16 + 4 * Lookup::kPlaces; ++key) {
    ASSERT_TRUE(lookup.insert(key, &value));
    ASSERT_EQ(lookup.find(key), &value);
    lookup.erase(key);
  }
  const double begin = cpu_seconds();
  for (std::uint64_t key = 3; key < 16; ++key) {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(lookup.find(key), nullptr);
  }
  EXPECT_LT(cpu_seconds() - begin, 0.1);
  lookup.close();
}

// Keys that share their first places: after some are erased, the others are still found.
TEST(DriverLookup, FindsKeysAfterErasedOnes) {
  Lookup lookup;
  ASSERT_TRUE(lookup.open());
  constexpr std::uint64_t kFirst = 16, kKeys = Lookup::kMaxKeys;
  for (std::uint64_t key = kFirst; key < kFirst + kKeys; ++key) {
    ASSERT_TRUE(lookup.insert(key, reinterpret_cast<void*>(key * 8)));
  }
  EXPECT_FALSE(lookup.insert(3, nullptr));  // full
  for (std::uint64_t key = kFirst; key < kFirst + kKeys; key += 2) lookup.erase(key);
  for (std::uint64_t key = kFirst; key < kFirst + kKeys; ++key) {
    ASSERT_EQ(lookup.find(key), key % 2 == 0 ? nullptr : reinterpret_cast<void*>(key * 8)) << key;
  }
  lookup.close();
}

}  // namespace
}  // namespace verbscope::driver
