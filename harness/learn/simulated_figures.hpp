// Figures of points on simulated copies of a profile with other parameter values, in short simulated intervals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/json.hpp"
#include "harness/learn/robust_fit.hpp"
#include "harness/process/served_program.hpp"
#include "harness/process/stop.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The benchmarks of a folder; each is asked once for its description.
class LearnPrograms {
 public:
  explicit LearnPrograms(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const BenchmarkSpec& spec(const std::string& benchmark);
  std::filesystem::path binary(const std::string& benchmark) const { return benchmark_binary(folder_, benchmark); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::map<std::string, BenchmarkSpec> specs_;
};

class SimulatedFigures {
 public:
  // `programs` must outlive this object. Runs `jobs` simulations at a time. Throws InterruptedError at the stop.
  SimulatedFigures(Json profile, std::vector<FitParameter> parameters, LearnPrograms& programs, std::size_t jobs,
                   StopSource* stop);

  // Adds a point as the next row. `key` names its figure in the result. `figure` is a rough expectation, from which the
  // length of the short interval follows. A parameter that needs other `properties` does not change the figure.
  void add(const Point& point, const std::string& key, double figure, std::uint32_t properties);

  // NaN for runs that fail. No trial is simulated twice. The usual interval is that of the point's options, or the
  // benchmark's default. A point that needs a long interval has no short one.
  std::vector<double> log_figures(const std::vector<FitTrial>& trials);

  std::size_t runs() const { return runs_; }

 private:
  struct Row {
    Point usual;                       // in its usual interval
    std::optional<Point> shortened{};  // in a short one
    std::string key;
    std::uint32_t properties;
    std::optional<std::uint64_t> small_buffer{};  // bytes, in a short interval; nothing: as in the profile
  };

  // Row, interval, seed, values.
  using Key = std::tuple<std::size_t, SimulatedInterval, std::uint64_t, std::vector<double>>;

  // Whole numbers and five digits: the values that the profile will have, of parameters that matter to the row.
  std::vector<double> rounded(const FitTrial& trial) const;
  // The logarithm of the figure of a trial, on a profile that goes to the file `name`.
  double log_figure(const Key& trial, const std::string& name);
  // The profile with these values. Buffers are small in a short interval, if the row allows that.
  Json profile_of(const Row& row, SimulatedInterval interval, const std::vector<double>& values) const;

  Json profile_;
  std::vector<FitParameter> parameters_;
  LearnPrograms& programs_;
  std::size_t jobs_;
  StopSource* stop_;
  TempFolder temp_;
  ServedPrograms served_;
  std::vector<Row> rows_;
  std::map<Key, double> known_;
  std::size_t runs_ = 0;
};

}  // namespace verbscope
