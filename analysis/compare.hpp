// `verbscope compare`: what was measured beside what the model says and what was published.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "analysis/mean_interval.hpp"
#include "analysis/points.hpp"
#include "analysis/published.hpp"
#include "analysis/residuals.hpp"
#include "common/record.hpp"

namespace verbscope {

// The results that every row has where they were measured: median and tail of a latency in nanoseconds.
inline constexpr const char* kComparedRate = "rate_mops";
inline constexpr std::array kComparedLatencies = {"lat_p50_ns", "lat_p99_ns"};

// One quantity per operation, counted and modelled; absent when nobody counted or no model was asked.
struct EventPair {
  std::optional<double> measured, modelled;
  // (measured / modelled - 1) in percent; 0 when both are 0. Absent without both, and when the model's alone is 0: of
  // nothing there is no percentage.
  std::optional<double> difference_percent() const;
};

enum EventGroup { kReads, kWrites, kMmios, kBytes, kEventGroups };

struct CompareRow {
  const Record* record = nullptr;
  std::string fabric;
  bool simulated = false;
  std::optional<double> rate_mops;
  std::optional<double> bound_mops;  // the model's upper bound of the rate
  std::string binding;               // the resource that gives it
  // DMA read cache lines; DMA written cache lines, full and partial; MMIO writes, lines and doorbells; bytes both ways
  // with headers. Per operation.
  std::array<EventPair, kEventGroups> events;
  const PublishedPoint* published = nullptr;
  std::optional<double> deviation_percent;  // of the measured value from the published one; 0 where a bound holds
  std::vector<Residual> residuals;          // the events in which counted and modelled differ, and what it means
};

// One row a record, in their order; those of each file by themselves (Record::file). The rows point into `records` and
// `published`.
std::vector<CompareRow> compare_records(const std::vector<const Record*>& records,
                                        const std::vector<PublishedPoint>& published);

// The repetitions of a point in one file.
struct ComparePoint {
  std::vector<const CompareRow*> runs;    // those that did not fail
  std::vector<const CompareRow*> failed;  // the others

  const CompareRow& first() const { return runs.empty() ? *failed.front() : *runs.front(); }
  // Of the runs that have a number under the key (result_number).
  std::optional<MeanInterval> mean(const std::string& key) const;
  // The mean of what was counted, and what is modelled.
  EventPair events(EventGroup group) const;
  // Of the mean from the published value.
  std::optional<double> deviation_percent() const;
};

// What is shown of the rows.
struct CompareView {
  bool every_record = false;           // each by itself: repetitions are not put together
  std::vector<std::string> columns{};  // further ones: keys of results, "limit" and "id"
  std::size_t width = 0;               // of the table (TextTable::text)
};
// Splits "gbps,limit,id" into columns: short names become keys. Throws UsageError for one that no record has.
std::vector<std::string> parse_columns(const std::vector<std::string>& names, const std::vector<CompareRow>& rows);

// Points in the order of their first row; those of several files next to each other.
std::vector<ComparePoint> points_of(const std::vector<CompareRow>& rows, bool every_record);
// Whether a column is "limit" or "id"; what stands there for a point.
bool is_text_column(const std::string& column);
std::string column_text(const ComparePoint& point, const std::string& column);

// The table with its legend; ends with a newline.
std::string compare_table(const std::vector<CompareRow>& rows, const CompareView& view = {});
// An array with an object for each point.
Json compare_json(const std::vector<CompareRow>& rows, const CompareView& view = {});
// A line for each point, with a column for each option, after a line of names.
std::string compare_csv(const std::vector<CompareRow>& rows, const CompareView& view = {});

}  // namespace verbscope
