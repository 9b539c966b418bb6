#include "harness/paper/curves.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analysis/text_table.hpp"

namespace verbscope {
namespace {

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
  const Json* at = &record.result;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const auto found = at->is_object() ? at->find(path.substr(begin, end - begin)) : at->end();
    if (found == at->end()) return "-";
    at = &*found;
    begin = end + 1;
  }
  return at->is_number() ? number_text(at->get<double>()) : plain_text(*at);
}

// Adds `label` if it is new.
void note(std::vector<std::string>& labels, const std::string& label) {
  if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
}

}  // namespace

std::string curve_table(const Sweep& sweep, const std::vector<CurvePoint>& points, std::size_t width) {
  std::vector<std::string> rows, curves;
  std::map<std::pair<std::string, std::string>, const Record*> records;
  for (const CurvePoint& point : points) {
    note(rows, row_label(sweep, point));
    note(curves, curve_label(sweep, point));
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
