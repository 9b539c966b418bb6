// `verbscope compare`: what was measured beside what the model says and what was published, a row a record.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "analysis/residuals.hpp"
#include "common/record.hpp"

namespace verbscope {

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

// One row a record, in their order. The rows point into `records` and `published`.
std::vector<CompareRow> compare_records(const std::vector<const Record*>& records,
                                        const std::vector<PublishedPoint>& published);

// The table with its legend, in `width` columns (TextTable::text); ends with a newline.
std::string compare_table(const std::vector<CompareRow>& rows, std::size_t width = 0);
Json compare_json(const std::vector<CompareRow>& rows);
// A line a record, its point's options as one text, after a line of names.
std::string compare_csv(const std::vector<CompareRow>& rows);

}  // namespace verbscope
