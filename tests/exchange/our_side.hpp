// One side of a run, for the tests of the exchange.
#pragma once

#include <chrono>

#include "common/units.hpp"
#include "exchange/message.hpp"

namespace verbscope::test {

inline constexpr Picos kLong = std::chrono::seconds(30);
inline constexpr const char* kSecret = "s3cret";

inline Terms our_terms() {
  return {"send_rate", "0.1.0", "6cd2536", false, Json{{"post_list", 16}, {"transport", "UD"}}};
}

}  // namespace verbscope::test
