#include "analysis/bends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/counted_cause.hpp"
#include "analysis/explain.hpp"

namespace verbscope {
namespace {

constexpr double kHighShare = 0.9;  // of the highest rate
constexpr double kDrop = 0.1;       // from one point to the next
constexpr std::size_t kMinKneePoints = 3;

class BendCurve {
 public:
  BendCurve(const std::string& option, const std::vector<BendPoint>& points) : option_(option), points_(points) {}

  std::vector<Bend> bends() const {
    std::vector<Bend> out;
    if (const auto rise = knee_of_rise()) {
      const auto counted = adapter_cause(*points_[*rise - 1].record, *points_[*rise].record);
      const std::string& limit = points_[*rise].limit;
      out.push_back(bend(Bend::Kind::knee, *rise, counted ? limit + "; " + *counted : limit));
    }
    bool fell = false;
    for (std::size_t i = 1; i < points_.size(); ++i) {
      const bool first_of_a_slope = i == 1 || !drops(i - 1);
      if (!drops(i)) continue;
      fell = true;
      if (first_of_a_slope) out.push_back(bend(Bend::Kind::cliff, i, cause(i - 1, i)));
    }
    if (const auto last = fell ? std::nullopt : knee_of_fall()) {
      out.push_back(bend(Bend::Kind::knee, *last, cause(*last, *last + 1)));
    }
    return out;
  }

 private:
  double top() const { return std::ranges::max(points_, {}, &BendPoint::mops).mops; }
  bool is_high(std::size_t i) const { return points_[i].mops >= kHighShare * top(); }

  bool drops(std::size_t i) const {
    const BendPoint &before = points_[i - 1], &here = points_[i];
    const double bytes = option_ == "size" && before.x > 0 ? here.x / before.x : 1;
    return here.mops * std::max(bytes, 1.0) < (1 - kDrop) * before.mops;
  }

  bool has_knees() const { return points_.size() >= kMinKneePoints; }

  // Never the last point: nothing shows that the rate stops rising there.
  std::optional<std::size_t> knee_of_rise() const {
    if (!has_knees()) return std::nullopt;
    std::size_t i = 0;
    while (!is_high(i)) ++i;
    return i > 0 && i + 1 < points_.size() ? std::optional(i) : std::nullopt;
  }

  std::optional<std::size_t> knee_of_fall() const {
    if (!has_knees()) return std::nullopt;
    std::size_t end = points_.size();
    while (!is_high(end - 1)) --end;
    return end < points_.size() ? std::optional(end - 1) : std::nullopt;
  }

  std::string cause(std::size_t before, std::size_t after) const {
    if (const auto counted = adapter_cause(*points_[before].record, *points_[after].record)) return *counted;
    return points_[after].limit;
  }

  Bend bend(Bend::Kind kind, std::size_t i, std::string cause) const {
    const double x = points_[i].x;
    const bool is_plural = option_.ends_with('s');
    const std::string place = option_ == "size" ? fmt::format("{:g} B", x)
                              : is_plural       ? fmt::format("{:g} {}", x, option_)
                                                : fmt::format("{} {:g}", option_, x);
    const char* word = kind == Bend::Kind::knee ? "knee" : "cliff";
    return {kind, i, fmt::format("{} at {}", word, place), std::move(cause)};
  }

  const std::string& option_;
  const std::vector<BendPoint>& points_;
};

}  // namespace

std::vector<Bend> bends_along(const std::string& option, const std::vector<BendPoint>& points) {
  const bool are_rates = std::ranges::all_of(points, [](const BendPoint& point) { return point.mops > 0; });
  if (!are_rates) return {};
  return BendCurve(option, points).bends();
}

std::string closed_form_limit(const Record& record) {
  const std::string words = explain(record).limit_words();
  return words.empty() ? "not decided" : words;
}

}  // namespace verbscope
