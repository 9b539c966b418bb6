#include "harness/sweep/point_names.hpp"

namespace verbscope {

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

}  // namespace verbscope
