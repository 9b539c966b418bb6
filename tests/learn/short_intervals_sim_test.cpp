// Figures of short intervals, for a fit.
#include <gtest/gtest.h>

#include <cmath>

#include "common/files.hpp"
#include "common/paths.hpp"
#include "harness/learn/simulated_figures.hpp"

namespace verbscope {
namespace {

constexpr double kNear = 0.02;  // of the logarithm of a figure

// Each of four threads gets one completion for 64 WRITEs: too few for a steady rate in a short interval.
TEST(ShortIntervals, CountOperationsWhereCompletionsAreTooFew) {
  const Json profile = read_json_file(find_config("clusters", "cx5"));
  LearnPrograms programs(std::filesystem::path(VERBSCOPE_BINARY_DIR) / "bin");
  SimulatedFigures simulated(profile, {}, programs, 2, nullptr);
  const Point point{.benchmark = "write_rate",
                    .params = {{"inline_size", 0}, {"post_list", 1}, {"size", 4096}, {"threads", 4}}};
  std::vector<FitTrial> trials{{.values = {}, .row = 0, .interval = SimulatedInterval::usual}};
  for (const double expected_mops : {13.4, 20.0}) {  // 150 us and 100 us
    simulated.add(point, "rate_mops", expected_mops, kAllProperties);
    trials.push_back({.values = {}, .row = trials.size() - 1});
  }
  const std::vector<double> figures = simulated.log_figures(trials);
  EXPECT_NEAR(figures[1], figures[0], kNear);
  EXPECT_NEAR(figures[2], figures[0], kNear);
}

}  // namespace
}  // namespace verbscope
