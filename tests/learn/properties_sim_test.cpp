// A parameter changes no figure of an operation without the properties that it needs (parameters.hpp): the simulator
// says whether that holds.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "common/files.hpp"
#include "common/paths.hpp"
#include "harness/learn/candidates.hpp"
#include "harness/learn/point_traits.hpp"
#include "harness/learn/simulated_figures.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kStride = 16, kLatencyStride = 3;  // of the candidates; latencies take little time
constexpr double kMove = 0.7;                            // of a coordinate: a factor of two
constexpr double kNothing = 0.03;  // of the logarithm of a figure: other starts of the same steady run

class Properties : public testing::TestWithParam<std::string> {
 protected:
  // Some candidates of each kind.
  std::vector<Candidate> points() const {
    std::vector<Candidate> out;
    const std::vector<Candidate> all = candidate_points(facts());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % (all[i].kind == "latency" ? kLatencyStride : kStride) == 0) out.push_back(all[i]);
    }
    return out;
  }

  CandidateFacts facts() const {
    return {.cores = profile_.at("host").at("cores").at("value").get<int>(),
            .mtu = profile_.at("wire").at("mtu_bytes").at("value").get<std::uint64_t>()};
  }

  // The starting values, with those parameters moved that need properties the point does not have.
  std::vector<double> moved(const Point& point, double by) const {
    std::vector<double> out;
    for (const FitParameter& each : parameters_) {
      const bool keep = may_change(each, properties_of(point, facts().mtu));
      out.push_back(keep ? each.start : value_at_coordinate(each, coordinate(each, each.start) + by));
    }
    return out;
  }

  Json profile_ = read_json_file(find_config("clusters", GetParam()));
  std::vector<FitParameter> parameters_ = parameters_to_learn(profile_);
  LearnPrograms programs_{std::filesystem::path(VERBSCOPE_BINARY_DIR) / "bin"};
  SimulatedFigures simulated_{profile_, parameters_, programs_, 2, nullptr};
};

TEST_P(Properties, ParametersThatNeedOthersDoNotChangeAPoint) {
  const std::vector<Candidate> candidates = points();
  std::vector<FitTrial> trials;
  for (std::size_t row = 0; row < candidates.size(); ++row) {
    const Point& point = candidates[row].point;
    simulated_.add(point, figure_key(point), expected_figure(point), kAllProperties);  // any parameter may change it
    for (const double by : {0.0, kMove, -kMove}) {
      trials.push_back({.values = moved(point, by), .row = row, .interval = SimulatedInterval::usual});
    }
  }
  const std::vector<double> figures = simulated_.log_figures(trials);
  std::set<std::size_t> compared;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const double usual = figures[trials[i].row * 3];
    if (!std::isfinite(usual)) continue;  // no steady rate on this cluster
    EXPECT_NEAR(figures[i], usual, kNothing) << candidates[trials[i].row].point.params.dump();
    compared.insert(trials[i].row);
  }
  EXPECT_GT(compared.size(), candidates.size() / 2);
}

// mlx4, whose threads share one doorbell register, and mlx5.
INSTANTIATE_TEST_SUITE_P(Clusters, Properties, testing::Values("cx3", "cib"));

}  // namespace
}  // namespace verbscope
