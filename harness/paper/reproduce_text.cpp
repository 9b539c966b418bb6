// The tables of `verbscope reproduce`: published rows next to ours, and sweeps as curves.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/error.hpp"
#include "harness/paper/reproduce.hpp"

namespace verbscope {
namespace {

std::string unit_of(const PublishedPoint& row) {
  const std::string_view metric = row.metric;
  if (metric.ends_with("mops")) return "Mops";
  if (metric.ends_with("gbit_per_s")) return "Gb/s";
  if (metric == "ns" || metric.ends_with("_ns")) return "ns";
  if (metric.starts_with("bytes") || metric.find("_bytes") != metric.npos) return "B";
  if (metric == "percent") return "%";
  if (metric.find("_over_") != metric.npos) return "ratio";
  return row.metric;  // ratio, cores, clients, queues
}

double deviation(const ReproducedRow& each) {
  return each.row->deviation_of(*each.value);
}

std::string heading(const PublishedPoint& row) {
  if (row.on_host) return fmt::format("this machine (not checked); published: {}", row.cluster);
  return row.modelled() ? fmt::format("model of {}", row.cluster) : fmt::format("sim:{} (SIMULATED)", row.cluster);
}

void add_row(TextTable& table, const ReproducedRow& each) {
  const PublishedPoint& row = *each.row;
  std::vector<std::string> cells{row.id, row.where, unit_of(row), row.value_text()};
  if (!each.value) {
    table.add_note(std::move(cells), "FAILED: " + each.failure);
    return;
  }
  cells.push_back(row.metric == "bytes" ? fmt::format("{:.0f}", *each.value) : number_text(each.value));
  if (row.on_host) {
    table.add_row(std::move(cells));
    return;
  }
  cells.push_back(percent_text(deviation(each)));
  cells.push_back(row.calibration ? "calibrated" : "predicted");
  cells.push_back(within_limits(each) ? "" : fmt::format("OFF by more than {:g} %", row.limit_percent()));
  table.add_row(std::move(cells));
}

// "16 calibrated (3 % allowed), worst 0.4 %: atc16-t5-send-cx3".
std::string summary_of(const std::vector<ReproducedRow>& rows, bool calibration) {
  std::size_t count = 0, outside = 0;
  const ReproducedRow* worst = nullptr;
  for (const ReproducedRow& each : rows) {
    if (!each.missing.empty() || each.row->on_host || each.row->calibration != calibration) continue;
    ++count;
    if (!within_limits(each)) ++outside;
    if (each.value && (worst == nullptr || std::abs(deviation(each)) > std::abs(deviation(*worst)))) worst = &each;
  }
  std::string text = fmt::format("{} {} ({:g} % allowed)", count, calibration ? "calibrated" : "predicted",
                                 calibration ? kCalibratedPercent : kPredictedPercent);
  if (outside > 0) text += fmt::format(", {} outside", outside);
  if (worst != nullptr) text += fmt::format(", worst {} %: {}", percent_text(deviation(*worst)), worst->row->id);
  return text;
}

constexpr const char* kRateKey = "rate_mops";

std::string entry_label(const Sweep& sweep, std::size_t entry) {
  if (entry >= sweep.points.size()) return "";
  if (!sweep.points[entry].label.empty()) return sweep.points[entry].label;
  std::vector<std::string> parts;
  for (const auto& [key, value] : sweep.points[entry].overrides.items()) parts.push_back(key + "=" + plain_text(value));
  return fmt::format("{}", fmt::join(parts, " "));
}

// The label of the table row that holds a point.
std::string row_label(const Sweep& sweep, const CurvePoint& point) {
  if (sweep.vary.empty()) return entry_label(sweep, point.point.entry);
  return plain_text(point.point.params.at(sweep.vary.back().first));
}

// The curve that a point belongs to: "cib batched connection=UD".
std::string curve_label(const Sweep& sweep, const CurvePoint& point) {
  std::vector<std::string> parts{point.fabric.substr(point.fabric.find(':') + 1)};
  const std::string label = sweep.vary.empty() ? "" : entry_label(sweep, point.point.entry);
  if (!label.empty()) parts.push_back(label);
  for (std::size_t i = 0; i + 1 < sweep.vary.size(); ++i) {
    const std::string& key = sweep.vary[i].first;
    parts.push_back(key + "=" + plain_text(point.point.params.at(key)));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string cell(const Record& record, const std::string& path) {
  if (record.status == RecordStatus::failed) return "FAILED";
  const Json* const at = value_at(record.result, path);
  if (at == nullptr) return "-";
  return at->is_number() ? number_text(at->get<double>()) : plain_text(*at);
}

// Adds `label` if it is new.
void add_label(std::vector<std::string>& labels, const std::string& label) {
  if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
}

}  // namespace

bool within_limits(const ReproducedRow& reproduced) {
  if (!reproduced.missing.empty() || reproduced.row->on_host) return true;
  return reproduced.value && std::abs(deviation(reproduced)) <= reproduced.row->limit_percent();
}

std::string reproduction_text(const std::vector<ReproducedRow>& rows, std::size_t width) {
  TextTable table({{"published row", {{"", true}}},
                   {"where", {{"", true}}},
                   {"unit", {{"", true}}},
                   {"figures", {{"published"}, {"ours"}, {"off by %"}}},
                   {"parameters", {{"", true}, {"", true}}}});
  std::set<std::string> headings;
  std::size_t missing = 0;
  for (const ReproducedRow& first : rows) {
    if (!first.missing.empty()) ++missing;
    if (!first.missing.empty() || !headings.insert(heading(*first.row)).second) continue;
    table.add_heading(heading(*first.row));
    for (const ReproducedRow& each : rows) {
      if (each.missing.empty() && heading(*each.row) == heading(*first.row)) add_row(table, each);
    }
  }
  std::string text = table.text(width);
  for (const ReproducedRow& each : rows) {
    if (!each.missing.empty()) text += fmt::format("not run: {}: {}\n", each.row->id, each.missing);
  }
  for (const ReproducedRow& each : rows) {
    if (each.value && !within_limits(each) && !each.row->known_miss.empty()) {
      text += fmt::format("known miss: {}: {}\n", each.row->id, each.row->known_miss);
    }
  }
  const bool good = std::ranges::all_of(rows, within_limits);
  const bool checked =
      std::ranges::any_of(rows, [](const ReproducedRow& each) { return each.missing.empty() && !each.row->on_host; });
  const char* verdict = !good          ? "NOT within limits"
                        : !checked     ? "nothing was checked"
                        : missing == 0 ? "all within limits"
                                       : "all rows that ran are within limits";
  const auto shown =
      std::ranges::count_if(rows, [](const ReproducedRow& each) { return each.missing.empty() && each.row->on_host; });
  const std::string beside = shown > 0 ? fmt::format("{} of another machine, not checked; ", shown) : "";
  text += fmt::format("{}: {}; {}; {}{} of {} rows not run\n", verdict, summary_of(rows, true), summary_of(rows, false),
                      beside, missing, rows.size());
  return text;
}

std::string curve_table(const Sweep& sweep, const std::vector<CurvePoint>& points, std::size_t width) {
  std::vector<std::string> rows, curves;
  std::map<std::pair<std::string, std::string>, const Record*> records;
  for (const CurvePoint& point : points) {
    add_label(rows, row_label(sweep, point));
    add_label(curves, curve_label(sweep, point));
    records[{row_label(sweep, point), curve_label(sweep, point)}] = &point.record;
  }
  std::vector<TableGroup> groups{{"", {{sweep.vary.empty() ? "" : sweep.vary.back().first}}}};
  for (const std::string& curve : curves) {
    groups.push_back({curve, {}});
    for (const std::string& key : sweep.show) groups.back().columns.push_back({key == kRateKey ? "Mops" : key});
  }
  TextTable table(groups);
  for (const std::string& row : rows) {
    std::vector<std::string> cells{row};
    for (const std::string& curve : curves) {
      const auto found = records.find({row, curve});
      for (const std::string& key : sweep.show) {
        cells.push_back(found == records.end() ? "" : cell(*found->second, key));
      }
    }
    table.add_row(std::move(cells));
  }
  std::string text = table.text(width);
  for (const CurvePoint& point : points) {
    if (point.record.status != RecordStatus::failed) continue;
    text +=
        fmt::format("FAILED: {}, {}: {}\n", curve_label(sweep, point), row_label(sweep, point), point.record.reason);
  }
  return text;
}

}  // namespace verbscope
