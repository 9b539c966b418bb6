#include "analysis/overview.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/bends.hpp"
#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/record.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

double rate_of(const Explanation& it) {
  return number_at(it.record->result, "rate_mops").value_or(0);
}

// Options whose values differ between the points.
std::vector<std::string> varied(const std::vector<Explanation>& points) {
  std::vector<std::string> keys;
  for (const Explanation& each : points) {
    for (std::string& key : option_keys(*each.record)) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    }
  }
  std::erase_if(keys, [&points](const std::string& key) {
    const std::string first = option_text(*points.front().record, key);
    return std::ranges::all_of(points,
                               [&](const Explanation& each) { return option_text(*each.record, key) == first; });
  });
  return keys;
}

// The common part of a series: everything except option `but`.
std::string others_of(const Explanation& it, const std::vector<std::string>& keys, const std::string& but) {
  std::string out = it.record->benchmark + " " + it.record->environment.value("fabric", "");
  for (const std::string& key : keys) {
    if (key != but) out += fmt::format(" {}={}", key, option_text(*it.record, key));
  }
  return out;
}

// "send_rate on sim:cib (SIMULATED)".
std::string head_of(const Explanation& it) {
  const auto fabric = it.record->environment.value("fabric", "?");
  return fmt::format("{} on {}{}", it.record->benchmark, fabric, is_simulated(fabric) ? " (SIMULATED)" : "");
}

std::string load_of(const Explanation& it) {
  if (it.limits.empty() || it.limits.front().load.utilisation <= 0) return "-";
  return fmt::format("{:.0f} %", it.limits.front().load.utilisation * 100);
}

std::string limit_of(const Explanation& it) {
  return it.limits.empty() ? "not decided" : it.limit_words();
}

std::vector<BendPoint> bend_points(const Series& series) {
  std::vector<BendPoint> points;
  for (const Explanation* each : series.points) {
    points.push_back({.x = *number_at(each->record->config, series.option),
                      .mops = rate_of(*each),
                      .record = each->record,
                      .limit = each->limits.empty() ? each->undecided : each->limit_words()});
  }
  return points;
}

const Advice* best_change(const Explanation& it) {
  const auto best = std::ranges::find(it.advice, false, &Advice::other_payload);
  return best == it.advice.end() ? nullptr : &*best;
}

}  // namespace

std::vector<Series> series_of(const std::vector<Explanation>& points) {
  std::vector<Series> out;
  if (points.empty()) return out;
  const std::vector<std::string> keys = varied(points);
  for (const std::string& key : keys) {
    std::map<std::string, Series> groups;
    for (const Explanation& each : points) {
      if (!number_at(each.record->config, key)) continue;
      Series& series = groups[others_of(each, keys, key)];
      series.option = key;
      series.points.push_back(&each);
    }
    for (auto& [_, series] : groups) {
      const auto value = [&key](const Explanation* each) { return *number_at(each->record->config, key); };
      std::ranges::stable_sort(series.points, {}, value);
      if (series.points.size() > 1 && value(series.points.front()) < value(series.points.back()))
        out.push_back(std::move(series));
    }
  }
  return out;
}

std::string changes_along(const Series& series) {
  const auto value = [&series](const Explanation& it) { return option_text(*it.record, series.option); };
  std::map<std::size_t, Bend> cliffs;
  for (Bend& bend : bends_along(series.option, bend_points(series))) {
    if (bend.kind == Bend::Kind::cliff) cliffs.emplace(bend.at, std::move(bend));
  }
  std::vector<std::string> parts;
  std::string limit = limit_of(*series.points.front());
  for (std::size_t i = 1; i < series.points.size(); ++i) {
    const Explanation &before = *series.points[i - 1], &here = *series.points[i];
    if (limit_of(here) != limit) {
      parts.push_back(fmt::format("{} {}: {}", parts.empty() ? "to" : "then to", value(before), limit));
      limit = limit_of(here);
      if (i + 1 == series.points.size()) parts.push_back(fmt::format("from {}: {}", value(here), limit));
    } else if (!parts.empty() && i + 1 == series.points.size()) {
      parts.push_back("then: " + limit);
    }
    if (const auto cliff = cliffs.find(i); cliff != cliffs.end()) {
      parts.push_back(fmt::format("{}, {} after {} Mops: {}", cliff->second.place, number_text(rate_of(here)),
                                  number_text(rate_of(before)), cliff->second.cause));
    }
  }
  return parts.empty() ? "" : fmt::format("{}: {}", series.option, fmt::join(parts, "; "));
}

std::string overview_text(const std::vector<Explanation>& points, std::size_t width) {
  if (points.empty()) return "";
  const std::vector<std::string> keys = varied(points);
  std::vector<TableColumn> options;
  for (const std::string& key : keys) options.push_back({key});
  std::set<std::string> heads;
  for (const Explanation& each : points) heads.insert(head_of(each));
  std::vector<TableGroup> groups{{"", {{"id", true}}}};
  if (heads.size() > 1) groups.front().columns.push_back({"of", true});
  if (!options.empty()) groups.push_back({"", options});
  groups.push_back({"", {{"Mops"}, {"limit", true}, {"load"}, {"twice gives"}, {"best change", true}, {"gives"}}});
  TextTable table(groups);
  for (const Explanation& each : points) {
    std::vector<std::string> cells{point_id(*each.record)};
    if (heads.size() > 1) cells.push_back(head_of(each));
    for (const std::string& key : keys) cells.push_back(option_text(*each.record, key));
    const Advice* best = best_change(each);
    cells.insert(cells.end(),
                 {number_text(rate_of(each)), limit_of(each), load_of(each),
                  each.limits.empty() ? "-" : gain_text(each.gain_of_all), best == nullptr ? "none" : best->change,
                  best == nullptr ? "-" : gain_text(best->factor)});
    table.add_row(std::move(cells));
  }
  std::set<std::string> lines;
  std::string changes;
  for (const Series& series : series_of(points)) {
    const std::string line = changes_along(series);
    if (!line.empty() && lines.insert(line).second) changes += wrap_lines("  " + line + "\n", width);
  }
  return (heads.size() > 1 ? "" : *heads.begin() + "\n") + table.text(width) +
         (changes.empty() ? "" : "\nWhere the limit changes:\n" + changes);
}

}  // namespace verbscope
