// What the records of runs of kv_rate must say.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/json.hpp"

namespace verbscope::test {

inline std::uint64_t count_of(const Json& of, const char* key) {
  return of.at(key).get<std::uint64_t>();
}

// Every value was looked at and right, and every PUT executed once, of a store whose server has a cache.
inline void expect_right_values(const Json& result, const std::string& what) {
  const Json& checks = result.at("checks");
  EXPECT_GT(count_of(result, "gets") + count_of(result, "puts"), 0u) << what;
  EXPECT_EQ(count_of(checks, "values"), count_of(result, "gets") - count_of(result, "misses")) << what;
  EXPECT_EQ(count_of(checks, "wrong") + count_of(checks, "torn") + count_of(checks, "stale"), 0u) << what;
  EXPECT_EQ(count_of(result, "puts_executed"), count_of(result, "puts")) << what;
}

}  // namespace verbscope::test
