// Formats numbers with the given decimals, but at least three significant digits.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace verbscope {

// 0.000123 becomes "0.000123" also with three decimals.
inline std::string with_digits(double value, int decimals) {
  constexpr int kMaxDecimals = 15;
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:.{}f}", value, decimals);
  const int needed = 2 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(needed, decimals, std::max(decimals, kMaxDecimals)));
}

}  // namespace verbscope
