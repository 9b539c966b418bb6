#include "analysis/compare.hpp"

#include <algorithm>

#include "analysis/csv.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "common/environment.hpp"

namespace verbscope {
namespace {

constexpr std::array<const char*, kEventGroups> kGroupKeys = {"dma_read_lines", "dma_write_lines", "mmio_writes",
                                                              "pcie_bytes"};

// The events that each group sums up.
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

// Adds the events counted on the machine under test, as the model speaks of no other: each group by the first source
// that sees some of it.
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

// A quantity of each operation as one of each second, at the measured rate.
Json per_second(const CompareRow& row, const std::optional<double>& per_op) {
  return row.rate_mops && per_op ? Json(*per_op * *row.rate_mops * 1e6) : Json();
}

Json row_json(const CompareRow& row) {
  Json json{{"id", point_id(*row.record)},
            {"benchmark", row.record->benchmark},
            {"fabric", row.fabric},
            {"simulated", row.simulated}};
  json["status"] = to_string(row.record->status);
  if (row.record->status == RecordStatus::failed) json["reason"] = row.record->reason;
  json["config"] = row.record->config;
  json["rate_mops"] = optional_json(row.rate_mops);
  json["bound_mops"] = optional_json(row.bound_mops);
  json["binding"] = row.binding;
  Json events = Json::object();
  for (std::size_t i = 0; i < kEventGroups; ++i) {
    events[kGroupKeys[i]] = Json{{"measured", optional_json(row.events[i].measured)},
                                 {"modelled", optional_json(row.events[i].modelled)},
                                 {"difference_percent", optional_json(row.events[i].difference_percent())},
                                 {"measured_per_s", per_second(row, row.events[i].measured)},
                                 {"modelled_per_s", per_second(row, row.events[i].modelled)}};
  }
  json["events_per_op"] = events;
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
                             {"deviation_percent", optional_json(row.deviation_percent)}};
  }
  return json;
}

}  // namespace

std::optional<double> EventPair::difference_percent() const {
  if (!measured || !modelled) return std::nullopt;
  if (*modelled == 0) return *measured == 0 ? std::optional(0.0) : std::nullopt;
  return deviation_percent(*measured, *modelled);
}

std::vector<CompareRow> compare_records(const std::vector<const Record*>& records,
                                        const std::vector<PublishedPoint>& published) {
  const Residuals residuals(records);
  std::vector<CompareRow> rows;
  for (const Record* record : records) {
    rows.push_back(compare_record(*record, published));
    rows.back().residuals = residuals.of(*record);
  }
  return rows;
}

Json compare_json(const std::vector<CompareRow>& rows) {
  Json out = Json::array();
  for (const CompareRow& row : rows) out.push_back(row_json(row));
  return out;
}

std::string compare_csv(const std::vector<CompareRow>& rows) {
  std::vector<std::string> names{"id",     "benchmark", "options",    "fabric", "simulated",
                                 "status", "rate_mops", "bound_mops", "binding"};
  for (const char* group : kGroupKeys) {
    for (const char* what : {"measured", "modelled"}) names.push_back(fmt::format("{}_{}_per_op", group, what));
  }
  names.insert(names.end(), {"published", "deviation_percent", "residuals"});
  std::string out = csv_line(names);
  for (const CompareRow& row : rows) {
    std::vector<std::string> cells{point_id(*row.record),
                                   row.record->benchmark,
                                   point_title(*row.record).substr(row.record->benchmark.size()),
                                   row.fabric,
                                   row.simulated ? "true" : "false",
                                   to_string(row.record->status),
                                   csv_number(row.rate_mops),
                                   csv_number(row.bound_mops),
                                   row.binding};
    for (const EventPair& pair : row.events) {
      cells.push_back(csv_number(pair.measured));
      cells.push_back(csv_number(pair.modelled));
    }
    cells.push_back(row.published != nullptr ? csv_number(row.published->value) : "");
    cells.push_back(csv_number(row.deviation_percent));
    std::string meanings;
    for (const Residual& residual : row.residuals) {
      meanings += fmt::format("{}{} {:+.3f}: {}", meanings.empty() ? "" : " | ", residual.event, residual.per_op,
                              residual.meaning);
    }
    cells.push_back(meanings);
    out += csv_line(cells);
  }
  return out;
}

}  // namespace verbscope
