#include "harness/evidence/measured_curves.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include "analysis/gnuplot.hpp"
#include "common/words.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kLeastPoints = 4;

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

// The words of a curve that not all of them have, or else those that all have.
std::string words(const std::vector<const MeasuredCurve*>& curves, const MeasuredCurve& curve, bool common) {
  std::string text;
  for (const std::string& word : words_of(curve.rest)) {
    const bool in_all = std::ranges::all_of(
        curves, [&word](const MeasuredCurve* each) { return std::ranges::count(words_of(each->rest), word) > 0; });
    if (in_all == common) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

// A title of several lines, none wider than a figure.
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

// A figure of no more curves than there are colours.
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
    if (by_x.size() < kLeastPoints) continue;
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
