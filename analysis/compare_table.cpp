// The table of `verbscope compare`. Options that differ between points have a column; the others are printed once,
// above the points of their fabric.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "analysis/compare.hpp"
#include "analysis/explain.hpp"
#include "analysis/keys.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/rate_changes.hpp"
#include "analysis/text_table.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr const char* kLegend =
    "rate: all threads of the server, measurement interval only. model bound: the highest rate of the interface (MMIO, "
    "PCIe, wire), set by the resource under \"by\"; a NIC may be slower.\n";
constexpr const char* kEventsLegend =
    "PCIe per operation, counted (meas.) and modelled, % is the difference: cache lines the NIC read (WQEs, payload) "
    "and wrote (CQEs, payload), MMIO writes by the CPU (64 B lines and doorbells), bytes in both directions with "
    "headers. "
    "Without a modelled value there is no %. Column groups with zeros only are omitted.\n";
constexpr std::size_t kLegendWidth = 120;  // if there is no limit
// Printed if a row has a published figure.
constexpr const char* kPublishedLegend =
    "published: the paper's figure, our deviation from it in %, and whether a simulator parameter was fitted to that "
    "figure (calibrated) or not (predicted).\n";
constexpr const char* kRunsLegend = "+-: half of the 95 % interval of the mean of the runs (Student's t).\n";

constexpr std::array<const char*, kEventGroups> kGroupNames = {"reads/op", "writes/op", "MMIOs/op", "PCIe bytes/op"};

using ComparePoints = std::vector<const ComparePoint*>;

const Record& first_record(const ComparePoint* point) {
  return *point->first().record;
}

// Options of all points of a benchmark: those that differ and those that are common, each in order of appearance.
struct OptionKeys {
  std::vector<std::string> varying, common;

  explicit OptionKeys(const ComparePoints& points) {
    std::vector<const Record*> records;
    for (const ComparePoint* point : points) records.push_back(&first_record(point));
    for (const std::string& key : option_keys(records)) {
      const bool same = std::ranges::all_of(points, [&](const ComparePoint* point) {
        return option_text(first_record(point), key) == option_text(first_record(points.front()), key);
      });
      (same ? common : varying).push_back(key);
    }
  }

  // " size=64 post_list=4", without `except`.
  std::string varying_text(const ComparePoint* point, const std::string& except = "") const {
    std::string text;
    for (const std::string& key : varying) {
      if (key != except) text += fmt::format(" {}={}", key, option_text(first_record(point), key));
    }
    return text;
  }
};

std::string optional_percent(const std::optional<double>& value) {
  return value ? percent_text(*value) : "-";
}

std::string mean_text(const std::optional<MeanInterval>& value, double unit = 1) {
  return number_text(value ? std::optional(value->mean / unit) : std::nullopt);
}

// "post_list" on two lines: "post" and "list".
TableColumn option_column(const std::string& key) {
  const std::size_t split = key.find('_');
  if (split == std::string::npos) return {key};
  return {.header = key.substr(split + 1), .top = key.substr(0, split)};
}

bool is_time(const std::string& key) {
  return key.ends_with("_ns");
}

// "p99 us" for lat_p99_ns; "Gb/s".
TableColumn extra_column(const std::string& column) {
  if (is_text_column(column)) return {.header = column, .left = true};
  if (column == "bandwidth_gbit_per_s") return {"Gb/s"};
  if (column == "bandwidth_mb_per_s") return {"MB/s"};
  const std::string name = short_key(column);
  if (is_time(column)) {
    return {.header = "us", .top = name.empty() ? column.substr(0, column.size() - 3) : name};
  }
  return {name.empty() ? column : name};
}

// The points of one benchmark, and the column groups that have values for them.
class BenchmarkTable {
 public:
  BenchmarkTable(const ComparePoints& points, const CompareView& view)
      : points_(points), view_(view), keys_(points), simulated_(true) {
    std::map<std::string, int> runs;  // number of each repetition, with every_record
    for (const ComparePoint* point : points_) {
      const CompareRow& row = point->first();
      simulated_ &= row.simulated;
      has_files_ |= !row.record->file.empty();
      repeated_ |= point->runs.size() + point->failed.size() > 1;
      has_latency_ |= point->mean(kComparedLatencies[0]).has_value();
      has_published_ |= row.published != nullptr;
      for (std::size_t i = 0; i < kEventGroups; ++i) {
        const EventPair pair = point->events(static_cast<EventGroup>(i));
        has_events_[i] |= pair.measured.value_or(0) != 0 || pair.modelled.value_or(0) != 0;
      }
      if (view_.every_record) runs_[point] = ++runs[row.record->file + row.fabric + repeated_key(*row.record)];
    }
    numbered_ = std::ranges::any_of(runs_, [](const auto& run) { return run.second > 1; });
  }

  bool has_events() const {
    return std::ranges::any_of(has_events_, [](bool has) { return has; });
  }
  bool has_published() const { return has_published_; }
  bool repeated() const { return repeated_; }

  std::string text() const {
    TextTable table(groups());
    std::set<std::string> fabrics;
    for (const ComparePoint* first : points_) {
      if (!fabrics.insert(first->first().fabric).second) continue;
      table.add_heading(heading(*first));
      for (const ComparePoint* point : points_) {
        if (point->first().fabric == first->first().fabric) add(table, *point);
      }
    }
    return table.text(view_.width);
  }

  // One line per point and event for which counted and modelled values differ. Points with equal options are
  // distinguished by their repetition.
  std::string residual_lines() const {
    std::string out;
    for (const ComparePoint* point : points_) {
      const CompareRow& row = point->first();
      for (const Residual& residual : row.residuals) {
        out += fmt::format("  {}{}{}: {:+.3g} {} per operation ({:+.3g} M/s): {}.\n", file_text(row), row.fabric,
                           keys_.varying_text(point), residual.per_op, residual.event, residual.per_second * 1e-6,
                           residual.meaning);
      }
    }
    return out.empty() ? "" : "where counted and modelled differ:\n" + out;
  }

  // The knees and cliffs along each varying option, with the other options fixed.
  std::string bend_lines() const {
    std::string out;
    for (const std::string& option : keys_.varying) {
      for (const auto& [rest, curve] : curves_along(option)) {
        for (const Bend& bend : bends_along(option, curve)) out += fmt::format("  {}: {}.\n", rest, bend.text());
      }
    }
    return out.empty() ? "" : "where the rate bends:\n" + out;
  }

 private:
  static std::string file_text(const CompareRow& row) { return row.record->file.empty() ? "" : row.record->file + " "; }

  std::vector<std::pair<std::string, std::vector<BendPoint>>> curves_along(const std::string& option) const {
    std::map<std::string, std::map<double, BendPoint>> curves;
    std::vector<std::string> order;
    for (const ComparePoint* point : points_) {
      const auto x = number_at(first_record(point).config, option);
      const auto rate = point->mean(kComparedRate);
      if (!x || !rate || keeps_one_outstanding(first_record(point))) continue;
      const CompareRow& row = point->first();
      const std::string rest = file_text(row) + row.fabric + keys_.varying_text(point, option);
      if (!curves.contains(rest)) order.push_back(rest);
      curves[rest][*x] = {.x = *x, .mops = rate->mean, .record = row.record, .limit = closed_form_limit(*row.record)};
    }
    std::vector<std::pair<std::string, std::vector<BendPoint>>> out;
    for (const std::string& rest : order) {
      out.emplace_back(rest, std::vector<BendPoint>{});
      for (const auto& [x, point] : curves[rest]) out.back().second.push_back(point);
    }
    return out;
  }

  std::vector<TableGroup> groups() const {
    TableGroup options;
    for (const std::string& key : keys_.varying) options.columns.push_back(option_column(key));
    if (has_files_) options.columns.push_back({.header = "file", .left = true});
    if (numbered_) options.columns.push_back({"rep"});
    if (options.columns.empty()) options.columns.push_back({""});
    TableGroup rate{simulated_ ? "sim." : "rate", {{"Mops"}}};
    if (repeated_) rate.columns.insert(rate.columns.end(), {{"+-"}, {"runs"}});
    std::vector<TableGroup> groups{options, rate};
    if (has_latency_) groups.push_back({"latency us", {{"p50"}, {"p99"}}});
    groups.push_back({"model bound", {{"Mops"}, {"by", true}}});
    for (std::size_t i = 0; i < kEventGroups; ++i) {
      if (has_events_[i]) groups.push_back({kGroupNames[i], {{"meas."}, {"model"}, {"%"}}});
    }
    if (has_published_) groups.push_back({"published", {{published_unit()}, {"%"}, {"", true}}});
    if (!view_.columns.empty()) {
      groups.push_back({"", {}});
      for (const std::string& column : view_.columns) groups.back().columns.push_back(extra_column(column));
    }
    return groups;
  }

  // "Mops" if all published figures are rates.
  std::string published_unit() const {
    const bool rates = std::ranges::all_of(points_, [](const ComparePoint* point) {
      const PublishedPoint* published = point->first().published;
      return published == nullptr || published->run.result_key == kComparedRate;
    });
    return rates ? "Mops" : "value";
  }

  std::string heading(const ComparePoint& point) const {
    const CompareRow& row = point.first();
    std::string text = row.simulated ? fmt::format("{} (SIMULATED)", row.fabric) : row.fabric;
    if (row.record->status == RecordStatus::imported) text += " (imported)";
    for (const std::string& key : keys_.common) text += fmt::format(" {}={}", key, option_text(*row.record, key));
    return text;
  }

  std::vector<std::string> key_cells(const ComparePoint& point) const {
    std::vector<std::string> cells;
    for (const std::string& key : keys_.varying) cells.push_back(option_text(*point.first().record, key));
    if (has_files_) cells.push_back(point.first().record->file);
    if (numbered_) cells.push_back(std::to_string(runs_.at(&point)));
    if (cells.empty()) cells.push_back("");
    return cells;
  }

  void add(TextTable& table, const ComparePoint& point) const {
    const std::size_t all = point.runs.size() + point.failed.size();
    if (!point.runs.empty()) table.add_row(row_cells(point));
    if (point.failed.empty()) return;
    const std::string share = all > 1 ? fmt::format(" {} of {} runs", point.failed.size(), all) : "";
    table.add_note(key_cells(point), fmt::format("FAILED{}: {}", share, point.failed.front()->record->reason));
  }

  std::vector<std::string> row_cells(const ComparePoint& point) const {
    const CompareRow& row = point.first();
    std::vector<std::string> cells = key_cells(point);
    const auto rate = point.mean(kComparedRate);
    cells.push_back(mean_text(rate));
    if (repeated_) {
      cells.push_back(rate && rate->count > 1 ? number_text(rate->high - rate->mean) : "-");
      cells.push_back(std::to_string(point.runs.size()));
    }
    constexpr double kNsPerUs = 1000;
    if (has_latency_) {
      cells.push_back(mean_text(point.mean(kComparedLatencies[0]), kNsPerUs));
      cells.push_back(mean_text(point.mean(kComparedLatencies[1]), kNsPerUs));
    }
    cells.push_back(number_text(row.bound_mops));
    cells.push_back(row.binding.empty() ? "-" : row.binding);
    for (std::size_t i = 0; i < kEventGroups; ++i) {
      if (!has_events_[i]) continue;
      const EventPair pair = point.events(static_cast<EventGroup>(i));
      cells.push_back(number_text(pair.measured));
      cells.push_back(number_text(pair.modelled));
      cells.push_back(optional_percent(pair.difference_percent()));
    }
    if (has_published_ && row.published != nullptr) {
      cells.push_back(row.published->value_text());
      cells.push_back(optional_percent(point.deviation_percent()));
      cells.push_back(row.published->calibration ? "calibrated" : "predicted");
    } else if (has_published_) {
      cells.insert(cells.end(), {"-", "", ""});
    }
    for (const std::string& column : view_.columns) {
      cells.push_back(is_text_column(column) ? column_text(point, column)
                                             : mean_text(point.mean(column), is_time(column) ? kNsPerUs : 1));
    }
    return cells;
  }

  const ComparePoints& points_;
  const CompareView& view_;
  OptionKeys keys_;
  std::map<const ComparePoint*, int> runs_;
  std::array<bool, kEventGroups> has_events_{};
  bool simulated_;
  bool numbered_ = false, repeated_ = false, has_files_ = false, has_latency_ = false, has_published_ = false;
};

}  // namespace

std::string compare_table(const std::vector<CompareRow>& rows, const CompareView& view) {
  const std::vector<ComparePoint> points = points_of(rows, view.every_record);
  std::string out;
  std::set<std::string> benchmarks;
  bool events = false, published = false, repeated = false;
  for (const ComparePoint& first : points) {
    if (!benchmarks.insert(first.first().record->benchmark).second) continue;
    ComparePoints own;
    for (const ComparePoint& point : points) {
      if (point.first().record->benchmark == first.first().record->benchmark) own.push_back(&point);
    }
    const BenchmarkTable table(own, view);
    events |= table.has_events();
    published |= table.has_published();
    repeated |= table.repeated();
    out += first.first().record->benchmark + "\n" + table.text() +
           wrap_lines(table.bend_lines() + table.residual_lines(), view.width) + "\n";
  }
  const std::string legend = std::string(kLegend) + (repeated ? kRunsLegend : "") + (events ? kEventsLegend : "") +
                             (published ? kPublishedLegend : "");
  return out + wrap_lines(legend, view.width == 0 ? kLegendWidth : view.width);
}

}  // namespace verbscope
