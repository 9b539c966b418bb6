// `verbscope compare`: measured values next to the model's and to published ones. Residuals are differences between the
// PCIe traffic of an adapter and the closed-form model.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "analysis/statistics.hpp"
#include "common/record.hpp"

namespace verbscope {

struct Residual {
  std::string event;      // "reads", "writes", "MMIO lines", "read completions"
  double per_op = 0;      // counted minus modelled, cache lines or completions per operation
  double per_second = 0;  // the same per second
  std::string meaning;    // one sentence
  bool decided = false;   // true if the evidence names one cause
};

// The records of a comparison, indexed so that each can be compared with those that differ in one kind of option only.
// Finds the option with which the extra reads grow. It indicates what the adapter reads.
class Residuals {
 public:
  explicit Residuals(const std::vector<const Record*>& records);

  // The residuals of a record above counting noise; empty if nothing was counted or modelled.
  std::vector<Residual> of(const Record& record) const;

 private:
  struct Sample {
    double knob = 0;
    double extra_reads = 0;
  };
  enum class Growth { unknown, grows, does_not };

  Growth growth(const Record& record, std::size_t kind) const;
  Residual extra_reads(const Record& record, double per_op) const;

  std::vector<std::map<std::string, std::vector<Sample>>> samples_;  // by kind of option, then by all other options
};

// The results that each row shows if they were measured. Latencies are in nanoseconds.
inline constexpr const char* kComparedRate = "rate_mops";
inline constexpr std::array kComparedLatencies = {"lat_p50_ns", "lat_p99_ns"};

// One quantity per operation, counted and modelled. Absent if not counted or not modelled.
struct EventPair {
  std::optional<double> measured, modelled;
  // (measured / modelled - 1) in percent. 0 if both are 0; absent if one of them is missing or only the modelled one is
  // 0.
  std::optional<double> difference_percent() const;
};

enum EventGroup { kReads, kWrites, kMmios, kBytes, kEventGroups };

struct CompareRow {
  const Record* record = nullptr;
  std::string fabric;
  bool simulated = false;
  std::optional<double> rate_mops;
  std::optional<double> bound_mops;  // the model's upper bound of the rate
  std::string binding;               // the resource that sets this bound
  // Per operation: cache lines read by DMA; cache lines written by DMA, full and partial; MMIO writes, lines and
  // doorbells; bytes in both directions with headers.
  std::array<EventPair, kEventGroups> events;
  const PublishedPoint* published = nullptr;
  std::optional<double> deviation_percent;  // measured relative to published; 0 if a published bound holds
  std::vector<Residual> residuals;          // events whose count differs from the model, each with its meaning
};

// Returns one row per record, in the order of the records. The records of each file are compared among themselves
// (Record::file). The rows point into `records` and `published`.
std::vector<CompareRow> compare_records(const std::vector<const Record*>& records,
                                        const std::vector<PublishedPoint>& published);

// All repetitions of a point in one file.
struct ComparePoint {
  std::vector<const CompareRow*> runs;  // those that did not fail
  std::vector<const CompareRow*> failed;

  const CompareRow& first() const { return runs.empty() ? *failed.front() : *runs.front(); }
  // Mean over the runs that have a number under `key` (result_number).
  std::optional<MeanInterval> mean(const std::string& key) const;
  // Mean of the counted values, and the modelled value.
  EventPair events(EventGroup group) const;
  // Deviation of the mean from the published value.
  std::optional<double> deviation_percent() const;
};

// Options of the output.
struct CompareView {
  bool every_record = false;           // one line per record instead of one per point
  std::vector<std::string> columns{};  // additional ones: keys of results, "limit" and "id"
  std::size_t width = 0;               // table width (TextTable::text)
};
// Turns "gbps,limit,id" into columns and short names into keys. Throws UsageError for a name that no record has.
std::vector<std::string> parse_columns(const std::vector<std::string>& names, const std::vector<CompareRow>& rows);

// The points in the order of their first rows. A point that occurs in several files has its entries next to each other.
std::vector<ComparePoint> points_of(const std::vector<CompareRow>& rows, bool every_record);
// True for the columns "limit" and "id"; column_text returns their text for a point.
bool is_text_column(const std::string& column);
std::string column_text(const ComparePoint& point, const std::string& column);

// The table with its legend. Ends with a newline.
std::string compare_table(const std::vector<CompareRow>& rows, const CompareView& view = {});
// An array with one object per point.
Json compare_json(const std::vector<CompareRow>& rows, const CompareView& view = {});
// A header line, then one line per point, with one column per option.
std::string compare_csv(const std::vector<CompareRow>& rows, const CompareView& view = {});

}  // namespace verbscope
