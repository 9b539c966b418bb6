#include "harness/evidence/measured_curves.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include "analysis/gnuplot.hpp"
#include "analysis/points.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr double kRisen = 0.9;    // of the largest value
constexpr double kFallen = 0.15;  // of the largest value

std::size_t largest(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

BendPair bend(const char* kind, const MeasuredCurve& curve, std::optional<std::size_t> theirs,
              std::optional<std::size_t> ours) {
  BendPair out;
  out.kind = kind;
  out.curve = &curve;
  if (theirs) out.theirs = curve.points[*theirs].x;
  if (ours) out.ours = curve.points[*ours].x;
  out.near = theirs && ours && std::max(*theirs, *ours) - std::min(*theirs, *ours) <= 1;
  return out;
}

constexpr std::size_t kMinPoints = 4;

std::string rest_of(const EvidenceRow& row, const std::string& along, const Json& with) {
  std::string text;
  for (const auto& [column, value] : row.columns.items()) {
    if (column == along || column == "cluster" || std::ranges::count(with, Json(column)) > 0) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", column, plain_text(value));
  }
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The words of a curve that all curves have (`common`), or the others.
std::string words(const std::vector<const MeasuredCurve*>& curves, const MeasuredCurve& curve, bool common) {
  std::string text;
  for (const std::string& word : words_of(curve.rest)) {
    const bool in_all = std::ranges::all_of(
        curves, [&word](const MeasuredCurve* each) { return std::ranges::count(words_of(each->rest), word) > 0; });
    if (in_all == common) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

// A title in lines that are at most as wide as the figure.
std::string title_of(const std::vector<const MeasuredCurve*>& curves) {
  constexpr std::size_t kWidth = 68;
  const MeasuredCurve& first = *curves.front();
  std::string title;
  for (const std::string& text :
       {fmt::format("{} on {}: points measured, lines SIMULATED", first.source, first.cluster),
        words(curves, first, true)}) {
    for (const std::string& line : wrap_words(text, kWidth)) {
      title += (title.empty() ? "" : ".\"\\n\".") + gnuplot_text(line);
    }
  }
  return title;
}

// Precondition: at most kGnuplotColors curves.
std::string curves_script(const std::vector<const MeasuredCurve*>& curves) {
  const MeasuredCurve& first = *curves.front();
  std::string script =
      fmt::format("set title {}\nset xlabel {}\nset ylabel 'Mops'\nset yrange [0:*]\nset grid\nset key outside below\n",
                  title_of(curves), gnuplot_text(first.along));
  std::string plots;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::map<double, double> theirs, ours;
    for (const CurvePair& point : curves[i]->points) {
      theirs[point.x] = point.theirs;
      ours[point.x] = point.ours;
    }
    script += gnuplot_data(fmt::format("theirs{}", i), theirs) + gnuplot_data(fmt::format("ours{}", i), ours);
    plots += fmt::format(
        "{}$theirs{} using 1:2 with points pt 7 lc rgb '{}' title '', $ours{} using 1:2 with lines lc rgb '{}' title "
        "{}",
        i > 0 ? ", " : "plot ", i, gnuplot_color(i), i, gnuplot_color(i),
        gnuplot_text(words(curves, *curves[i], false)));
  }
  return script + plots + "\n";
}

}  // namespace

const char* BendPair::verdict() const {
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
  const double lowest = *std::min_element(behind, values.end());
  if (lowest > (1 - kFallen) * *behind) return std::nullopt;
  const double half = (*behind + lowest) / 2;
  const auto fallen = std::find_if(behind, values.end(), [half](double value) { return value <= half; });
  return static_cast<std::size_t>(fallen - values.begin());
}

std::vector<BendPair> compare_bends(const std::vector<MeasuredCurve>& curves) {
  std::vector<BendPair> out;
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

std::vector<MeasuredCurve> measured_curves(const std::vector<EvidenceOutcome>& outcomes) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;  // source, cluster, along, rest
  std::map<Key, std::map<double, CurvePair>> found;
  for (const EvidenceOutcome& outcome : outcomes) {
    if (!outcome.ours) continue;
    const PublishedPoint& point = outcome.row->point;
    for (const Json& each : outcome.row->curves) {
      const auto along = each.at("along").get<std::string>();
      const Json& x = outcome.row->columns.at(along);
      if (!x.is_number()) continue;
      const std::string rest = rest_of(*outcome.row, along, each.value("with", Json::array()));
      found[{point.where, point.cluster, along, rest}][x.get<double>()] = {
          .x = x.get<double>(), .theirs = point.value, .ours = *outcome.ours};
    }
  }
  std::vector<MeasuredCurve> curves;
  for (const auto& [key, by_x] : found) {
    if (by_x.size() < kMinPoints) continue;
    const auto& [source, cluster, along, rest] = key;
    MeasuredCurve& curve = curves.emplace_back();
    curve.source = source;
    curve.cluster = cluster;
    curve.along = along;
    curve.rest = rest;
    for (const auto& [x, pair] : by_x) curve.points.push_back(pair);
  }
  return curves;
}

std::vector<std::filesystem::path> draw_curves(const std::vector<MeasuredCurve>& curves,
                                               const std::filesystem::path& folder) {
  std::map<std::string, std::vector<const MeasuredCurve*>> figures;
  for (const MeasuredCurve& curve : curves) {
    figures[fmt::format("{}-{}-{}", curve.source, curve.cluster, curve.along)].push_back(&curve);
  }
  std::filesystem::create_directories(folder);
  std::vector<std::filesystem::path> drawn;
  for (const auto& [name, own] : figures) {
    for (std::size_t begin = 0; begin < own.size(); begin += kGnuplotColors) {
      const auto from = own.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto to = from + static_cast<std::ptrdiff_t>(std::min(kGnuplotColors, own.size() - begin));
      drawn.push_back(folder /
                      fmt::format("{}{}.svg", name, begin > 0 ? fmt::format("-{}", begin / kGnuplotColors + 1) : ""));
      draw_with_gnuplot(drawn.back(), curves_script({from, to}));
    }
  }
  return drawn;
}

}  // namespace verbscope
