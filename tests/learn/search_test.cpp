// The whole search of a fit, on random machines whose figures are formulas.
#include <gtest/gtest.h>

#include "harness/learn/intervals.hpp"
#include "harness/learn/starts.hpp"
#include "tests/learn/random_machine.hpp"

namespace verbscope {
namespace {

struct Outcome {
  int identified = 0, within_tenth = 0, inside = 0;
  std::size_t simulations = 0;
};

// Searches as the learner does.
Outcome search(std::uint64_t seed) {
  constexpr auto kFresh = RobustFit::Until::little_gained_with_fresh_derivatives;
  RandomMachine machine(seed);
  RobustFit fit(machine.parameters(), machine.simulate(), {});
  machine.measure(fit);
  fit.improve(0);
  fit.scan_caches();
  fit.improve(8);
  improve_units(fit, 4);
  fit.improve(20, kFresh);
  fit.set_loss(Loss::cauchy);
  fit.scan_caches();
  fit.improve(20);
  improve_from_slower_side(fit, 20);
  fit.scan_caches();
  fit.improve(10, kFresh);
  const std::vector<RobustFit> alternatives = improve_with_alternatives(fit, 4);
  fit.improve(10, kFresh);
  fit.refresh();
  const std::vector<LearnedInterval> intervals = profile_intervals(fit, alternatives);
  Outcome out{.simulations = machine.simulations()};
  const std::vector<double> values = fit.values();
  for (std::size_t p = 0; p < intervals.size(); ++p) {
    const double truth = machine.truth()[p];
    if (!intervals[p].identified) continue;
    ++out.identified;
    if (std::abs(values[p] - truth) <= 0.1 * truth) ++out.within_tenth;
    if (intervals[p].low <= truth && truth <= intervals[p].high) ++out.inside;
  }
  return out;
}

// From starts that are off by a factor of 1.6 in the mean, with disturbed figures.
TEST(Search, FindsTheParametersOfRandomMachines) {
  Outcome sum;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const Outcome one = search(seed);
    EXPECT_GT(one.identified, 15) << seed;
    EXPECT_LT(one.simulations, 120'000U) << seed;
    sum.identified += one.identified;
    sum.within_tenth += one.within_tenth;
    sum.inside += one.inside;
  }
  EXPECT_GE(sum.within_tenth, 0.9 * sum.identified) << "of " << sum.identified;
  EXPECT_GE(sum.inside, 0.9 * sum.identified) << "of " << sum.identified;
}

}  // namespace
}  // namespace verbscope
