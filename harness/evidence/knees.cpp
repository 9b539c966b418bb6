#include "harness/evidence/knees.hpp"

#include <algorithm>

namespace verbscope {
namespace {

constexpr double kRisen = 0.9;    // of the largest value
constexpr double kFallen = 0.15;  // of the largest value

std::size_t largest(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

Bend bend(const char* kind, const MeasuredCurve& curve, std::optional<std::size_t> theirs,
          std::optional<std::size_t> ours) {
  Bend out;
  out.kind = kind;
  out.curve = &curve;
  if (theirs) out.theirs = curve.points[*theirs].x;
  if (ours) out.ours = curve.points[*ours].x;
  out.near = theirs && ours && std::max(*theirs, *ours) - std::min(*theirs, *ours) <= 1;
  return out;
}

}  // namespace

const char* Bend::verdict() const {
  if (near) return "within a step";
  if (!ours) return "missing";
  return theirs ? "elsewhere" : "ours only";
}

std::size_t knee(const std::vector<double>& values) {
  const double top = values[largest(values)];
  const auto risen = std::ranges::find_if(values, [top](double value) { return value >= kRisen * top; });
  return static_cast<std::size_t>(risen - values.begin());
}

std::optional<std::size_t> cliff(const std::vector<double>& values) {
  const std::size_t top = largest(values);
  const auto behind = values.begin() + static_cast<std::ptrdiff_t>(top);
  const double least = *std::min_element(behind, values.end());
  if (least > (1 - kFallen) * *behind) return std::nullopt;
  const double half = (*behind + least) / 2;
  const auto fallen = std::find_if(behind, values.end(), [half](double value) { return value <= half; });
  return static_cast<std::size_t>(fallen - values.begin());
}

std::vector<Bend> bends(const std::vector<MeasuredCurve>& curves) {
  std::vector<Bend> out;
  for (const MeasuredCurve& curve : curves) {
    std::vector<double> theirs, ours;
    for (const CurvePair& point : curve.points) {
      theirs.push_back(point.theirs);
      ours.push_back(point.ours);
    }
    if (knee(theirs) + knee(ours) > 0) out.push_back(bend("knee", curve, knee(theirs), knee(ours)));
    if (cliff(theirs) || cliff(ours)) out.push_back(bend("cliff", curve, cliff(theirs), cliff(ours)));
  }
  return out;
}

}  // namespace verbscope
