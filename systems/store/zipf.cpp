#include "systems/store/zipf.hpp"

#include <algorithm>
#include <cmath>

#include "common/hash.hpp"

namespace verbscope {

namespace {

// log1p(x) / x and expm1(x) / x, also where x is 0.
double log1p_over(double x) {
  return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2;
}
double expm1_over(double x) {
  return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2;
}

// Uniform in [0, 1).
double fraction(std::uint64_t random) {
  return static_cast<double>(random >> 11) * 0x1p-53;
}

}  // namespace

Zipf::Zipf(std::uint64_t count, double exponent)
    : count_(static_cast<double>(count)),
      exponent_(exponent),
      first_(integral(1.5) - 1),
      last_(integral(count_ + 0.5)),
      near_(2 - from_integral(integral(2.5) - density(2))) {}

double Zipf::integral(double x) const {
  const double log = std::log(x);
  return expm1_over((1 - exponent_) * log) * log;
}

double Zipf::from_integral(double y) const {
  const double t = std::max(y * (1 - exponent_), -1.0);
  return std::exp(log1p_over(t) * y);
}

double Zipf::density(double x) const {
  return std::exp(-exponent_ * std::log(x));
}

std::uint64_t Zipf::rank(std::uint64_t random) const {
  for (;; random = mix(random)) {
    const double y = last_ + fraction(random) * (first_ - last_);
    const double x = from_integral(y);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, count_);
    if (rank - x <= near_ || y >= integral(rank + 0.5) - density(rank)) return static_cast<std::uint64_t>(rank) - 1;
  }
}

}  // namespace verbscope
