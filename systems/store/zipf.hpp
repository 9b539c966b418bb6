// Zipf's law: of `count` things the one of rank r (from 1) is taken with a probability in proportion to r^-exponent.
#pragma once

#include <cstdint>

namespace verbscope {

// Rejection-inversion (Hormann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
// distributions", ACM TOMACS 6, 1996): exact, in constant time and memory.
class Zipf {
 public:
  // `count` is from 1 to 2^32, `exponent` above 0.
  Zipf(std::uint64_t count, double exponent);

  // The rank, from 0 on, that a uniform random number stands for: the same for the same number. Allocates nothing.
  std::uint64_t rank(std::uint64_t random) const;

 private:
  double integral(double x) const;       // of the density, from 1 to x
  double from_integral(double y) const;  // its inverse
  double density(double x) const;

  double count_;
  double exponent_;
  double first_;  // integral(1.5) - 1
  double last_;   // integral(count + 0.5)
  double near_;   // a rank so near above its place is taken at once
};

}  // namespace verbscope
