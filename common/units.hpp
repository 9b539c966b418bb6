// Strong unit types. In code, a time is an integer count of picoseconds or nanoseconds, a size is Bytes, a count of
// operations is Ops. Mops and Gb/s are used only in output and records (the functions at the end).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace verbscope {

using Picos = std::chrono::duration<std::int64_t, std::pico>;
using Nanos = std::chrono::duration<std::int64_t, std::nano>;

// A count with its own unit: values of one unit can be added and scaled, but not mixed with another unit.
template <class Tag>
struct Quantity {
  std::uint64_t value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::uint64_t v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return value += other.value, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value -= other.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, std::uint64_t n) { return Quantity(a.value * n); }
};

using Bytes = Quantity<struct BytesTag>;
using Ops = Quantity<struct OpsTag>;

// A bandwidth in bytes per second. A double, because link rates are exact ratios only before encoding (984.6 MB/s).
struct BytesPerSecond {
  double value = 0;
  constexpr auto operator<=>(const BytesPerSecond&) const = default;
};

// The smallest multiple of `step` (> 0) that is at least `n`.
constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t step) {
  return (n + step - 1) / step * step;
}
constexpr std::uint64_t divide_up(std::uint64_t n, std::uint64_t step) {
  return (n + step - 1) / step;
}

// The time for which bytes occupy a link of `rate`, rounded to the nearest picosecond.
class TransferTime {
 public:
  constexpr explicit TransferTime(BytesPerSecond rate) : picos_per_byte_(1e12 / rate.value) {}
  constexpr Picos operator()(Bytes bytes) const {
    const double picos = static_cast<double>(bytes.value) * picos_per_byte_;
    return Picos(static_cast<std::int64_t>(picos + 0.5));  // NOLINT(bugprone-incorrect-roundings): not negative
  }

 private:
  double picos_per_byte_;  // computed once, because division is slow
};

// For records and output only: seconds, and millions of operations per second.
constexpr double to_seconds(Picos t) {
  return static_cast<double>(t.count()) * 1e-12;
}
constexpr double to_mops(Ops ops, Picos t) {
  return static_cast<double>(ops.value) / to_seconds(t) * 1e-6;
}

}  // namespace verbscope
