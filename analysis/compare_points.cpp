// Groups the rows of `verbscope compare` into points, and computes the values of a point.
#include <algorithm>
#include <map>

#include "analysis/bends.hpp"
#include "analysis/compare.hpp"
#include "analysis/keys.hpp"

namespace verbscope {
namespace {

constexpr const char* kLimit = "limit";
constexpr const char* kId = "id";

std::optional<double> mean_or_none(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(mean_interval(values).mean);
}

}  // namespace

std::optional<MeanInterval> ComparePoint::mean(const std::string& key) const {
  std::vector<double> values;
  for (const CompareRow* run : runs) {
    if (const auto value = result_number(*run->record, key)) values.push_back(*value);
  }
  return values.empty() ? std::nullopt : std::optional(mean_interval(values));
}

EventPair ComparePoint::events(EventGroup group) const {
  std::vector<double> measured;
  for (const CompareRow* run : runs) {
    if (const auto& value = run->events[group].measured) measured.push_back(*value);
  }
  return {mean_or_none(measured), first().events[group].modelled};
}

std::optional<double> ComparePoint::deviation_percent() const {
  if (first().published == nullptr) return std::nullopt;
  const auto value = mean(first().published->run.result_key);
  return value ? std::optional(first().published->deviation_of(value->mean)) : std::nullopt;
}

std::vector<std::string> parse_columns(const std::vector<std::string>& names, const std::vector<CompareRow>& rows) {
  std::vector<const Record*> records;
  for (const CompareRow& row : rows) records.push_back(row.record);
  std::vector<std::string> columns;
  for (const std::string& name : names) {
    columns.push_back(is_text_column(name) ? name : find_result_key("--columns", name, records));
  }
  return columns;
}

std::vector<ComparePoint> points_of(const std::vector<CompareRow>& rows, bool every_record) {
  std::vector<std::string> order;                            // of points, whatever their files
  std::map<std::string, std::vector<std::string>> of_point;  // the files that contain it
  std::map<std::pair<std::string, std::string>, std::vector<const CompareRow*>> runs;
  for (const CompareRow& row : rows) {
    const std::string key = row.fabric + " " + row.record->benchmark + " " + repeated_key(*row.record);
    std::vector<std::string>& files = of_point[key];
    if (files.empty()) order.push_back(key);
    if (std::ranges::find(files, row.record->file) == files.end()) files.push_back(row.record->file);
    runs[{key, row.record->file}].push_back(&row);
  }
  std::vector<ComparePoint> points;
  for (const std::string& key : order) {
    for (const std::string& file : of_point[key]) {
      bool fresh = true;
      for (const CompareRow* row : runs[{key, file}]) {
        if (fresh || every_record) points.emplace_back();
        fresh = false;
        const bool is_failed = row->record->status == RecordStatus::failed;
        (is_failed ? points.back().failed : points.back().runs).push_back(row);
      }
    }
  }
  return points;
}

bool is_text_column(const std::string& column) {
  return column == kLimit || column == kId;
}

std::string column_text(const ComparePoint& point, const std::string& column) {
  const Record& record = *point.first().record;
  if (column == kId) return point_id(record);
  return record.status == RecordStatus::failed ? "" : closed_form_limit(record);
}

}  // namespace verbscope
