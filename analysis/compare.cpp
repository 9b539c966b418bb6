#include "analysis/compare.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "analysis/explain.hpp"
#include "analysis/keys.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/rate_changes.hpp"
#include "analysis/text_table.hpp"
#include "common/record.hpp"

namespace verbscope {
namespace {

constexpr std::array<const char*, kEventGroups> kGroupKeys = {"dma_read_lines", "dma_write_lines", "mmio_writes",
                                                              "pcie_bytes"};

// The events that make up each group.
const std::array<std::vector<std::string>, kEventGroups> kGroupEvents = {
    {{"dma_read_lines"},
     {"dma_write_full_lines", "dma_write_partial_lines"},
     {"mmio_wc_lines", "mmio_doorbells"},
     {"bytes_to_nic", "bytes_to_host"}}};

template <class T>
std::array<double, kEventGroups> group_events(const PcieEvents<T>& events) {
  std::array<double, kEventGroups> sums{};
  PcieEvents<T>::each(events, [&sums](const char* name, T value) {
    for (std::size_t i = 0; i < kEventGroups; ++i) {
      if (std::ranges::count(kGroupEvents[i], name) > 0) sums[i] += static_cast<double>(value);
    }
  });
  return sums;
}

// Adds the events counted on the machine under test, the only one that the model covers. Each group comes from the
// first source that counts any of it.
void add_measured(const Record& record, CompareRow& row) {
  for (const CounterReport& report : record.counters) {
    const double ops = operations_in_window(record.result, report);
    if (report.node != "server" || !(ops > 0)) continue;
    const auto grouped = group_events(report.events);
    for (std::size_t i = 0; i < kEventGroups; ++i) {
      const bool seen = std::ranges::any_of(kGroupEvents[i], [&](const auto& event) { return report.sees(event); });
      if (seen && !row.events[i].measured) row.events[i].measured = grouped[i] / ops;
    }
  }
}

void add_model(const Prediction& prediction, CompareRow& row) {
  row.bound_mops = prediction.bound_mops;
  row.binding = prediction.binding;
  const auto grouped = group_events(prediction.pcie);
  for (std::size_t i = 0; i < kEventGroups; ++i) row.events[i].modelled = grouped[i];
}

CompareRow compare_record(const Record& record, const std::vector<PublishedPoint>& published) {
  CompareRow row;
  row.record = &record;
  row.fabric = record.environment.value("fabric", "?");
  row.simulated = is_simulated(row.fabric);
  if (const auto prediction = prediction_of(record)) add_model(*prediction, row);
  if (record.status == RecordStatus::failed) return row;
  row.rate_mops = number_at(record.result, "rate_mops");
  add_measured(record, row);
  row.published = find_published(published, record);
  if (row.published != nullptr) {
    const auto value = number_at(record.result, row.published->run.result_key);
    if (value) row.deviation_percent = row.published->deviation_of(*value);
  }
  return row;
}

const char* status_of(const ComparePoint& point) {
  return to_string(point.first().record->status);
}

// The option as stored in the configuration; empty if absent.
std::string option_value(const Record& record, const std::string& key) {
  for (const std::string& name : {key, key + "_s"}) {
    const auto value = record.config.find(name);
    if (value == record.config.end() || value->is_null()) continue;
    return plain_text(*value);
  }
  return "";
}

// Converts a quantity per operation to one per second, at the measured rate.
Json per_second(const std::optional<MeanInterval>& rate, const std::optional<double>& per_op) {
  return rate && per_op ? Json(*per_op * rate->mean * 1e6) : Json();
}

Json mean_json(const std::optional<MeanInterval>& value) {
  return value ? Json(value->mean) : Json();
}

Json events_json(const ComparePoint& point, const std::optional<MeanInterval>& rate) {
  Json events = Json::object();
  for (std::size_t i = 0; i < kEventGroups; ++i) {
    const EventPair pair = point.events(static_cast<EventGroup>(i));
    events[kGroupKeys[i]] = Json{{"measured", optional_json(pair.measured)},
                                 {"modelled", optional_json(pair.modelled)},
                                 {"difference_percent", optional_json(pair.difference_percent())},
                                 {"measured_per_s", per_second(rate, pair.measured)},
                                 {"modelled_per_s", per_second(rate, pair.modelled)}};
  }
  return events;
}

Json point_json(const ComparePoint& point, const CompareView& view) {
  const CompareRow& row = point.first();
  Json json{{"id", point_id(*row.record)},
            {"benchmark", row.record->benchmark},
            {"fabric", row.fabric},
            {"simulated", row.simulated}};
  if (!row.record->file.empty()) json["file"] = row.record->file;
  json["status"] = status_of(point);
  if (!point.failed.empty()) json["reason"] = point.failed.front()->record->reason;
  json["config"] = row.record->config;
  json["runs"] = point.runs.size();
  json["failed_runs"] = point.failed.size();
  const auto rate = point.mean(kComparedRate);
  json["rate_mops"] = mean_json(rate);
  json["rate_low_mops"] = rate ? Json(rate->low) : Json();
  json["rate_high_mops"] = rate ? Json(rate->high) : Json();
  for (const char* key : kComparedLatencies) {
    if (const auto latency = point.mean(key)) json[key] = latency->mean;
  }
  json["bound_mops"] = optional_json(row.bound_mops);
  json["binding"] = row.binding;
  json["events_per_op"] = events_json(point, rate);
  json["residuals"] = Json::array();
  for (const Residual& residual : row.residuals) {
    json["residuals"].push_back(Json{{"event", residual.event},
                                     {"per_op", residual.per_op},
                                     {"per_s", residual.per_second},
                                     {"decided", residual.decided},
                                     {"meaning", residual.meaning}});
  }
  if (row.published != nullptr) {
    json["published"] = Json{{"id", row.published->id},
                             {"value", row.published->value},
                             {"compare", to_string(row.published->comparison)},
                             {"use", row.published->calibration ? "calibration" : "prediction"},
                             {"deviation_percent", optional_json(point.deviation_percent())}};
  }
  for (const std::string& column : view.columns) {
    if (!json.contains(column))
      json[column] = is_text_column(column) ? Json(column_text(point, column)) : mean_json(point.mean(column));
  }
  return json;
}

std::string meanings(const CompareRow& row) {
  std::string text;
  for (const Residual& residual : row.residuals) {
    text +=
        fmt::format("{}{} {:+.3f}: {}", text.empty() ? "" : " | ", residual.event, residual.per_op, residual.meaning);
  }
  return text;
}

constexpr const char* kLimit = "limit";
constexpr const char* kId = "id";

}  // namespace

std::optional<double> EventPair::difference_percent() const {
  if (!measured || !modelled) return std::nullopt;
  if (*modelled == 0) return *measured == 0 ? std::optional(0.0) : std::nullopt;
  return deviation_percent(*measured, *modelled);
}

std::vector<CompareRow> compare_records(const std::vector<const Record*>& records,
                                        const std::vector<PublishedPoint>& published) {
  std::map<std::string, std::vector<const Record*>> records_of_file;
  for (const Record* record : records) records_of_file[record->file].push_back(record);
  std::map<std::string, Residuals> residuals;
  for (const auto& [file, own] : records_of_file) residuals.emplace(file, own);
  std::vector<CompareRow> rows;
  for (const Record* record : records) {
    rows.push_back(compare_record(*record, published));
    rows.back().residuals = residuals.at(record->file).of(*record);
  }
  return rows;
}

Json compare_json(const std::vector<CompareRow>& rows, const CompareView& view) {
  Json out = Json::array();
  for (const ComparePoint& point : points_of(rows, view.every_record)) out.push_back(point_json(point, view));
  return out;
}

std::string compare_csv(const std::vector<CompareRow>& rows, const CompareView& view) {
  const std::vector<ComparePoint> points = points_of(rows, view.every_record);
  std::vector<const Record*> records;
  for (const ComparePoint& point : points) records.push_back(point.first().record);
  const std::vector<std::string> options = option_keys(records);
  std::vector<std::string> names{"id", "file", "benchmark", "label", "fabric", "simulated", "status", "reason"};
  names.insert(names.end(), options.begin(), options.end());
  names.insert(names.end(), {"runs", kComparedRate, "rate_low_mops", "rate_high_mops"});
  names.insert(names.end(), kComparedLatencies.begin(), kComparedLatencies.end());
  names.insert(names.end(), {"bound_mops", "binding"});
  for (const char* group : kGroupKeys) {
    for (const char* what : {"measured", "modelled"}) names.push_back(fmt::format("{}_{}_per_op", group, what));
  }
  names.insert(names.end(), {"published", "deviation_percent", "residuals"});
  const auto is_new = [&names](const std::string& column) { return std::ranges::find(names, column) == names.end(); };
  std::vector<std::string> further;
  std::ranges::copy_if(view.columns, std::back_inserter(further), is_new);
  names.insert(names.end(), further.begin(), further.end());
  std::string out = csv_line(names);
  for (const ComparePoint& point : points) {
    const CompareRow& row = point.first();
    const auto number = [&point](const std::string& key) {
      const auto mean = point.mean(key);
      return csv_number(mean ? std::optional(mean->mean) : std::nullopt);
    };
    std::vector<std::string> cells{point_id(*row.record),
                                   row.record->file,
                                   row.record->benchmark,
                                   label_of(*row.record),
                                   row.fabric,
                                   row.simulated ? "true" : "false",
                                   status_of(point),
                                   point.failed.empty() ? "" : point.failed.front()->record->reason};
    for (const std::string& key : options) cells.push_back(option_value(*row.record, key));
    const auto rate = point.mean(kComparedRate);
    cells.push_back(std::to_string(point.runs.size()));
    cells.push_back(number(kComparedRate));
    cells.push_back(csv_number(rate ? std::optional(rate->low) : std::nullopt));
    cells.push_back(csv_number(rate ? std::optional(rate->high) : std::nullopt));
    for (const char* key : kComparedLatencies) cells.push_back(number(key));
    cells.push_back(csv_number(row.bound_mops));
    cells.push_back(row.binding);
    for (std::size_t i = 0; i < kEventGroups; ++i) {
      const EventPair pair = point.events(static_cast<EventGroup>(i));
      cells.push_back(csv_number(pair.measured));
      cells.push_back(csv_number(pair.modelled));
    }
    cells.push_back(row.published != nullptr ? csv_number(row.published->value) : "");
    cells.push_back(csv_number(point.deviation_percent()));
    cells.push_back(meanings(row));
    for (const std::string& column : further) {
      cells.push_back(is_text_column(column) ? column_text(point, column) : number(column));
    }
    out += csv_line(cells);
  }
  return out;
}

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
  return {mean_of(measured), first().events[group].modelled};
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
  std::vector<std::string> order;                                  // of points, whatever their files
  std::map<std::string, std::vector<std::string>> files_of_point;  // the files that contain it
  std::map<std::pair<std::string, std::string>, std::vector<const CompareRow*>> runs;
  for (const CompareRow& row : rows) {
    const std::string key = row.fabric + " " + row.record->benchmark + " " + repeated_key(*row.record);
    std::vector<std::string>& files = files_of_point[key];
    if (files.empty()) order.push_back(key);
    if (std::ranges::find(files, row.record->file) == files.end()) files.push_back(row.record->file);
    runs[{key, row.record->file}].push_back(&row);
  }
  std::vector<ComparePoint> points;
  for (const std::string& key : order) {
    for (const std::string& file : files_of_point[key]) {
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
