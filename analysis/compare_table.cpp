// The table of `verbscope compare`. Options that differ between the points have a column, the others stand once above
// the points of their fabric.
#include <algorithm>
#include <set>

#include "analysis/compare.hpp"
#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/words.hpp"

namespace verbscope {
namespace {

constexpr const char* kLegend =
    "rate: all threads of the server, steady window only. bound: what the model allows, from the resource under \"by\" "
    "alone; a NIC may be slower.\n"
    "PCIe per operation, counted (meas.) and modelled, % is the difference: cache lines the NIC read (WQEs, payload) "
    "and wrote (CQEs, payload), MMIO writes by the CPU (64 B lines and doorbells), bytes both ways with headers. Where "
    "the model has none, there is no %.\n";
constexpr std::size_t kLegendWidth = 120;  // where nothing limits it
// Where a row has a published figure.
constexpr const char* kPublishedLegend =
    "published: the paper's figure, our deviation from it in %, and whether a simulator parameter was fitted to that "
    "figure (calibrated) or not (predicted).\n";

// The options of all rows of one benchmark, apart: those that differ, and those that do not, in order of appearance.
struct OptionKeys {
  std::vector<std::string> varying, common;

  explicit OptionKeys(const std::vector<const CompareRow*>& rows) {
    std::vector<std::string> keys;
    for (const CompareRow* row : rows) {
      for (const std::string& key : option_keys(*row->record)) {
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
      }
    }
    for (const std::string& key : keys) {
      const bool same = std::ranges::all_of(rows, [&](const CompareRow* row) {
        return option_text(*row->record, key) == option_text(*rows.front()->record, key);
      });
      (same ? common : varying).push_back(key);
    }
  }
};

std::string optional_percent(const std::optional<double>& value) {
  return value ? percent_text(*value) : "-";
}

std::vector<std::string> option_cells(const CompareRow& row, const OptionKeys& keys, bool repeated) {
  std::vector<std::string> cells;
  for (const std::string& key : keys.varying) cells.push_back(option_text(*row.record, key));
  if (repeated) cells.push_back(std::to_string(repetition_of(*row.record) + 1));
  if (cells.empty()) cells.push_back("");
  return cells;
}

void add_row(TextTable& table, const CompareRow& row, std::vector<std::string> cells) {
  if (row.record->status == RecordStatus::failed) {
    table.add_note(std::move(cells), "FAILED: " + row.record->reason);
    return;
  }
  cells.push_back(number_text(row.rate_mops));
  cells.push_back(number_text(row.bound_mops));
  cells.push_back(row.binding.empty() ? "-" : row.binding);
  for (const EventPair& pair : row.events) {
    cells.push_back(number_text(pair.measured));
    cells.push_back(number_text(pair.modelled));
    cells.push_back(optional_percent(pair.difference_percent()));
  }
  if (row.published != nullptr) {
    cells.push_back(row.published->value_text());
    cells.push_back(optional_percent(row.deviation_percent));
    cells.push_back(row.published->calibration ? "calibrated" : "predicted");
  } else {
    cells.insert(cells.end(), {"-", "", ""});
  }
  table.add_row(std::move(cells));
}

// "post_list" under two lines: "post" and "list".
TableColumn option_column(const std::string& key) {
  const std::size_t split = key.find('_');
  if (split == std::string::npos) return {key};
  return {.header = key.substr(split + 1), .top = key.substr(0, split)};
}

std::vector<TableGroup> table_groups(const OptionKeys& keys, bool repeated, bool simulated) {
  TableGroup options;
  for (const std::string& key : keys.varying) options.columns.push_back(option_column(key));
  if (repeated) options.columns.push_back({"rep"});
  if (options.columns.empty()) options.columns.push_back({""});
  std::vector<TableGroup> groups{
      options, {simulated ? "sim." : "rate", {{"Mops"}}}, {"model bound", {{"Mops"}, {"by", true}}}};
  for (const char* name : {"reads/op", "writes/op", "MMIOs/op", "PCIe bytes/op"}) {
    groups.push_back({name, {{"meas."}, {"model"}, {"%"}}});
  }
  groups.push_back({"published", {{"Mops"}, {"%"}, {"", true}}});
  return groups;
}

std::string fabric_heading(const CompareRow& row, const OptionKeys& keys) {
  std::string text = row.simulated ? fmt::format("{} (SIMULATED)", row.fabric) : row.fabric;
  if (row.record->status == RecordStatus::imported) text += " (imported)";
  for (const std::string& key : keys.common) text += fmt::format(" {}={}", key, option_text(*row.record, key));
  return text;
}

std::string benchmark_table(const std::vector<const CompareRow*>& rows, std::size_t width) {
  const OptionKeys keys(rows);
  const bool repeated =
      std::ranges::any_of(rows, [](const CompareRow* row) { return repetition_of(*row->record) > 0; });
  const bool simulated = std::ranges::all_of(rows, &CompareRow::simulated);
  TextTable table(table_groups(keys, repeated, simulated));
  std::set<std::string> fabrics;
  for (const CompareRow* first : rows) {
    if (!fabrics.insert(first->fabric).second) continue;
    table.add_heading(fabric_heading(*first, keys));
    for (const CompareRow* row : rows) {
      if (row->fabric == first->fabric) add_row(table, *row, option_cells(*row, keys, repeated));
    }
  }
  return table.text(width);
}

// Lists by point where counted and modelled differ; points with the same options differ by their repetition.
std::string residual_lines(const std::vector<const CompareRow*>& rows) {
  const OptionKeys keys(rows);
  std::string out;
  for (const CompareRow* row : rows) {
    for (const Residual& residual : row->residuals) {
      std::string options;
      for (const std::string& key : keys.varying) options += fmt::format(" {}={}", key, option_text(*row->record, key));
      out += fmt::format("  {}{}: {:+.3g} {} an operation ({:+.3g} M/s): {}.\n", row->fabric, options, residual.per_op,
                         residual.event, residual.per_second * 1e-6, residual.meaning);
    }
  }
  return out.empty() ? "" : "where counted and modelled differ:\n" + out;
}

}  // namespace

std::string compare_table(const std::vector<CompareRow>& rows, std::size_t width) {
  std::string out;
  std::set<std::string> benchmarks;
  for (const CompareRow& first : rows) {
    if (!benchmarks.insert(first.record->benchmark).second) continue;
    std::vector<const CompareRow*> own;
    for (const CompareRow& row : rows) {
      if (row.record->benchmark == first.record->benchmark) own.push_back(&row);
    }
    out += first.record->benchmark + "\n" + benchmark_table(own, width) + wrap_lines(residual_lines(own), width) + "\n";
  }
  const bool published = std::ranges::any_of(rows, [](const CompareRow& row) { return row.published != nullptr; });
  const std::string legend = std::string(kLegend) + (published ? kPublishedLegend : "");
  return out + wrap_lines(legend, width == 0 ? kLegendWidth : width);
}

}  // namespace verbscope
