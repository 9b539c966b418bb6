#include <algorithm>
#include <cctype>
#include <map>

#include "analysis/points.hpp"
#include "analysis/report.hpp"

namespace verbscope {
namespace {

struct Figure {
  std::string id, paper, name, along;
  std::vector<std::string> results{"rate_mops"};
};

// Sorted by name: "Fig 7" is before "Fig 12".
std::vector<Figure> figures_of(const std::vector<CompareRow>& rows) {
  std::map<std::pair<std::size_t, std::string>, Figure> figures;
  for (const CompareRow& row : rows) {
    const std::string id = figure_of(*row.record);
    const std::size_t space = id.find(' ');
    if (space == std::string::npos) continue;
    const Json& harness = row.record->environment.at("harness");
    Figure& figure = figures[{id.size(), id}];
    figure.id = id;
    figure.paper = id.substr(0, space);
    figure.name = id.substr(space + 1);
    figure.along = text_at(harness, "along");
    for (const Json& key : harness.value("show", Json::array())) {
      const std::string text = key.is_string() ? key.get<std::string>() : "";
      if (std::ranges::count(figure.results, text) == 0 && !text.empty()) figure.results.push_back(text);
    }
  }
  std::vector<Figure> out;
  for (auto& [key, figure] : figures) out.push_back(std::move(figure));
  return out;
}

// The row that was compared with `published`: the one with the exact options of the paper's figure, else the first.
const CompareRow* reproduction(const std::vector<CompareRow>& rows, const PublishedPoint& published) {
  const CompareRow* first = nullptr;
  for (const CompareRow& row : rows) {
    if (row.published != &published) continue;
    const bool is_own = std::ranges::all_of(published.run.keys, [&row](const MatchKey& match) {
      const auto value = row.record->config.find(match.key);
      return value != row.record->config.end() && *value == match.run;
    });
    if (is_own) return &row;
    if (first == nullptr) first = &row;
  }
  return first;
}

std::string reason_for_none(const PublishedPoint& published) {
  if (!published.reproducible()) return "needs " + published.needs;
  if (published.modelled()) return "a figure of the model: verbscope reproduce";
  return published.single() ? "not in these records" : "a figure of several runs: verbscope reproduce";
}

Json published_json(const std::vector<CompareRow>& rows, const PublishedPoint& published) {
  const CompareRow* row = reproduction(rows, published);
  Json json{{"where", published.where},
            {"what", published.what},
            {"cluster", published.cluster},
            {"published", published.value_text() + (published.metric == "rate_mops" ? " Mops" : "")},
            {"use", published.calibration ? "calibrated" : "predicted"},
            {"ours", nullptr},
            {"why", ""},
            {"deviation", nullptr},
            {"point", nullptr}};
  if (row == nullptr) {
    json["why"] = reason_for_none(published);
    return json;
  }
  json["ours"] = optional_json(number_at(row->record->result, published.run.result_key));
  json["deviation"] = optional_json(row->deviation_percent);
  json["point"] = row - rows.data();
  return json;
}

}  // namespace

bool names_figure(const std::string& where, const std::string& figure) {
  for (std::size_t begin = 0; begin < where.size();) {
    const std::size_t end = std::min(where.find(", ", begin), where.size());
    const std::string part = where.substr(begin, end - begin);
    const bool has_letter =
        part.size() == figure.size() + 1 && std::isalpha(static_cast<unsigned char>(part.back())) != 0;
    if (part == figure || (has_letter && part.starts_with(figure))) return true;
    begin = end + 2;
  }
  return false;
}

std::string figure_of(const Record& record) {
  return harness_text(record, "figure");
}

Json paper_figures(const std::vector<CompareRow>& rows, const std::vector<PublishedPoint>& published) {
  Json out = Json::array();
  for (const Figure& figure : figures_of(rows)) {
    Json own = Json::array();
    for (const PublishedPoint& point : published) {
      if (point.paper == figure.paper && names_figure(point.where, figure.name))
        own.push_back(published_json(rows, point));
    }
    out.push_back(Json{{"id", figure.id},
                       {"title", figure.paper + ", " + figure.name},
                       {"along", figure.along},
                       {"results", figure.results},
                       {"rows", std::move(own)}});
  }
  Json all = Json::array();
  for (const PublishedPoint& point : published) {
    if (reproduction(rows, point) != nullptr) all.push_back(published_json(rows, point));
  }
  if (!all.empty()) {
    out.push_back(Json{{"id", ""},
                       {"title", "every published row"},
                       {"along", nullptr},
                       {"results", Json::array()},
                       {"rows", std::move(all)}});
  }
  return out;
}

}  // namespace verbscope
