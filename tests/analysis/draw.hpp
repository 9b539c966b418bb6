// Samples of known distributions, the same with every library.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace verbscope {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  // Normal, by Box and Muller.
  double normal() {
    const double first = uniform(), second = uniform();
    return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
  }
  // `n` values around `mean` with a spread of so large a part of it.
  std::vector<double> rates(int n, double mean, double spread) {
    std::vector<double> out;
    for (int i = 0; i < n; ++i) out.push_back(mean * (1 + spread * normal()));
    return out;
  }

 private:
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }

  std::mt19937_64 random_;
};

}  // namespace verbscope
