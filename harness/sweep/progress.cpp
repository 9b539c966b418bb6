#include "harness/sweep/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

// Bounds the cost of a fit: options beyond this number are ignored.
constexpr std::size_t kMaxFeatures = 24;
// Keeps slopes near 0 while few points have finished; in squares of log2 of an option.
constexpr double kRidge = 0.01;
constexpr double kMinSeconds = 1e-3;  // s; lower bound for the logarithm
constexpr double kMinValue = 0.5;     // lower bound of an option's value for the logarithm: 0 is one step below 1

using Matrix = std::vector<std::vector<double>>;

// The columns of the feature matrix: one per numeric option, and one per value of any other option.
class Columns {
 public:
  explicit Columns(const std::vector<Point>& points) {
    std::map<std::string, std::vector<Json>> values;
    for (const Point& point : points) {
      add(values["benchmark"], point.benchmark);
      for (const auto& [key, value] : point.params.items()) add(values[key], value);
    }
    for (const auto& [key, all] : values) {
      const bool numbers = std::ranges::all_of(all, [](const Json& value) { return value.is_number(); });
      if (all.size() < 2) continue;
      if (numbers) {
        columns_.emplace_back(key, Json());
      } else {
        for (const Json& value : all) columns_.emplace_back(key, value);
      }
    }
    columns_.resize(std::min(columns_.size(), kMaxFeatures));
  }

  std::vector<double> features(const Point& point) const {
    std::vector<double> out;
    for (const auto& [key, value] : columns_) {
      const Json own = key == "benchmark" ? Json(point.benchmark) : point.params.value(key, Json());
      if (value.is_null()) {
        out.push_back(own.is_number() ? std::log2(std::max(kMinValue, std::abs(own.get<double>()))) : 0);
      } else {
        out.push_back(own == value ? 1 : 0);
      }
    }
    return out;
  }

 private:
  static void add(std::vector<Json>& values, const Json& value) {
    if (values.size() < kMaxFeatures && std::ranges::find(values, value) == values.end()) values.push_back(value);
  }

  std::vector<std::pair<std::string, Json>> columns_;
};

// Solves a x = b for a positive definite matrix by Gaussian elimination.
std::vector<double> solve(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t row = i + 1; row < n; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (std::size_t k = i; k < n; ++k) a[row][k] -= factor * a[i][k];
      b[row] -= factor * b[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

// Keeps the rewritten line within a terminal of 80 columns.
constexpr std::size_t kTerminalColumns = 79;

}  // namespace

TimeLeft::TimeLeft(const std::vector<Point>& points) : TimeLeft(points.size()) {
  const Columns columns(points);
  std::ranges::transform(points, features_.begin(), [&](const Point& point) { return columns.features(point); });
}

// A relative time for each point. left() scales them by the measured times of the finished points.
std::vector<double> TimeLeft::fitted_times() const {
  const std::size_t n = features_.front().size();
  std::vector<std::size_t> ended;
  for (std::size_t i = 0; i < count(); ++i) {
    if (took_[i] != kNotEnded) ended.push_back(i);
  }
  std::vector<double> mean(n, 0.0);
  for (const std::size_t i : ended) {
    for (std::size_t k = 0; k < n; ++k) mean[k] += features_[i][k] / static_cast<double>(ended.size());
  }
  Matrix squares(n, std::vector<double>(n, 0.0));
  std::vector<double> products(n, 0.0);
  for (const std::size_t i : ended) {
    for (std::size_t k = 0; k < n; ++k) {
      const double x = features_[i][k] - mean[k];
      products[k] += x * std::log2(std::max(took_[i], kMinSeconds));
      for (std::size_t m = 0; m < n; ++m) squares[k][m] += x * (features_[i][m] - mean[m]);
    }
  }
  for (std::size_t k = 0; k < n; ++k) squares[k][k] += kRidge;
  const std::vector<double> slopes = solve(std::move(squares), std::move(products));
  std::vector<double> times;
  for (const std::vector<double>& features : features_) {
    double log = 0;
    for (std::size_t k = 0; k < n; ++k) log += slopes[k] * (features[k] - mean[k]);
    times.push_back(std::exp2(std::clamp(log, -20.0, 20.0)));
  }
  return times;
}

std::chrono::duration<double> TimeLeft::left() const {
  if (std::ranges::all_of(took_, [](double took) { return took == kNotEnded; })) return {};
  const std::vector<double> times = fitted_times();
  double spent = 0, fitted = 0, rest = 0;
  for (std::size_t i = 0; i < count(); ++i) {
    if (took_[i] == kNotEnded) {
      rest += times[i];
    } else {
      spent += took_[i];
      fitted += times[i];
    }
  }
  return std::chrono::duration<double>(rest * spent / fitted);
}

PointNames::PointNames(const std::vector<Point>& points) {
  for (const Point& point : points) {
    repeated_ = repeated_ || point.repetition > 0;
    for (const auto& [key, value] : point.params.items()) {
      const Json& first = points.front().params;
      if (!first.contains(key) || first.at(key) != value) varying_.insert(key);
    }
    for (const auto& [key, value] : points.front().params.items()) {
      if (!point.params.contains(key)) varying_.insert(key);
    }
  }
}

std::string PointNames::name(const Point& point) const {
  std::string text = point.label.empty() ? point.benchmark : fmt::format("{} \"{}\"", point.benchmark, point.label);
  for (const auto& [key, value] : point.params.items()) {
    if (varying_.contains(key)) text += " " + option_argument(key, value).substr(2);
  }
  return repeated_ ? fmt::format("{} #{}", text, point.repetition + 1) : text;
}

Progress::Progress(TimeLeft time_left, std::FILE* out, bool terminal)
    : time_left_(std::move(time_left)), out_(out), terminal_(terminal) {}

std::string Progress::left_text() const {
  if (done_ == 0 || done_ == time_left_.count()) return "";
  return fmt::format(", {} left", duration_text(time_left_.left()));
}

void Progress::started(const std::string& name) {
  if (!terminal_) return;
  print(fmt::format("[{}/{}{}] {}", done_ + 1, time_left_.count(), left_text(), name).substr(0, kTerminalColumns),
        false);
}

void Progress::finished(std::size_t point, const std::string& name, const std::string& outcome,
                        std::chrono::duration<double> took) {
  ++done_;
  time_left_.ended(point, took);
  print(
      fmt::format("[{}/{}] {}: {} ({}{})", done_, time_left_.count(), name, outcome, duration_text(took), left_text()),
      true);
}

// A sweep continues if its progress cannot be printed; check_standard_output reports the error at the end.
void Progress::print(const std::string& line, bool ended) {
  try {
    if (terminal_) {
      rewrite_line(out_, fmt::format("{:<{}}", line, kTerminalColumns));
    } else {
      print_text(out_, line);
    }
    if (ended) print_text(out_, "\n");
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error&) {
  }
}

std::string duration_text(std::chrono::duration<double> duration) {
  const double s = duration.count();
  if (s < 9.95) return fmt::format("{:.1f} s", s);
  const auto whole = static_cast<long long>(std::llround(s));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace verbscope
