#include "harness/paper/reproduce.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/text_table.hpp"
#include "common/error.hpp"

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

double deviation(const Reproduced& each) {
  return each.row->deviation_of(*each.value);
}

std::string heading(const PublishedPoint& row) {
  if (row.on_host) return fmt::format("this machine, for what it is worth; published: {}", row.cluster);
  return row.modelled() ? fmt::format("model of {}", row.cluster) : fmt::format("sim:{} (SIMULATED)", row.cluster);
}

void add_row(TextTable& table, const Reproduced& each) {
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
std::string summary_of(const std::vector<Reproduced>& rows, bool calibration) {
  std::size_t count = 0, outside = 0;
  const Reproduced* worst = nullptr;
  for (const Reproduced& each : rows) {
    if (!each.missing.empty() || each.row->on_host || each.row->calibration != calibration) continue;
    ++count;
    if (!within_limits(each)) ++outside;
    if (each.value && (worst == nullptr || std::abs(deviation(each)) > std::abs(deviation(*worst)))) worst = &each;
  }
  std::string text = fmt::format("{} {} ({:g} % allowed)", count, calibration ? "calibrated" : "predicted",
                                 calibration ? kCalibratedPercent : kPredictedPercent);
  if (outside > 0) text += fmt::format(", {} NOT WITHIN", outside);
  if (worst != nullptr) text += fmt::format(", worst {} %: {}", percent_text(deviation(*worst)), worst->row->id);
  return text;
}

}  // namespace

bool within_limits(const Reproduced& reproduced) {
  if (!reproduced.missing.empty() || reproduced.row->on_host) return true;
  return reproduced.value && std::abs(deviation(reproduced)) <= reproduced.row->limit_percent();
}

std::string reproduction_text(const std::vector<Reproduced>& rows, std::size_t width) {
  TextTable table({{"published row", {{"", true}}},
                   {"where", {{"", true}}},
                   {"unit", {{"", true}}},
                   {"figures", {{"published"}, {"ours"}, {"off by %"}}},
                   {"parameters", {{"", true}, {"", true}}}});
  std::set<std::string> headings;
  std::size_t missing = 0;
  for (const Reproduced& first : rows) {
    if (!first.missing.empty()) ++missing;
    if (!first.missing.empty() || !headings.insert(heading(*first.row)).second) continue;
    table.add_heading(heading(*first.row));
    for (const Reproduced& each : rows) {
      if (each.missing.empty() && heading(*each.row) == heading(*first.row)) add_row(table, each);
    }
  }
  std::string text = table.text(width);
  for (const Reproduced& each : rows) {
    if (!each.missing.empty()) text += fmt::format("not run: {}: {}\n", each.row->id, each.missing);
  }
  const bool good = std::ranges::all_of(rows, within_limits);
  const bool judged =
      std::ranges::any_of(rows, [](const Reproduced& each) { return each.missing.empty() && !each.row->on_host; });
  const char* verdict = !good          ? "NOT within limits"
                        : !judged      ? "nothing is judged"
                        : missing == 0 ? "all within limits"
                                       : "what ran is within limits";
  const auto shown =
      std::ranges::count_if(rows, [](const Reproduced& each) { return each.missing.empty() && each.row->on_host; });
  const std::string beside = shown > 0 ? fmt::format("{} of another machine, not judged; ", shown) : "";
  text += fmt::format("{}: {}; {}; {}{} of {} rows not run\n", verdict, summary_of(rows, true), summary_of(rows, false),
                      beside, missing, rows.size());
  return text;
}

}  // namespace verbscope
