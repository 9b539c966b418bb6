// The outputs of `verbscope diff`: text, JSON, CSV, and the reason to fail the gate.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "analysis/axis.hpp"
#include "analysis/diff.hpp"
#include "analysis/statistics.hpp"
#include "analysis/text_table.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr std::array<const char*, 9> kVerdicts{"inconclusive", "equivalent", "slower",       "faster",     "more",
                                               "fewer",        "FAILED",     "only in base", "only in new"};

const char* words(ChangeVerdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

// Table cell for a point without a verdict: the number of repetitions that would decide.
std::string runs_to_decide(const DiffRow& row) {
  if (row.verdict != ChangeVerdict::inconclusive || !row.interval) return "-";
  return row.could_decide ? std::to_string(row.repetitions) : fmt::format("> {}", kMaxRepetitions);
}

int count_of(const Diff& diff, ChangeVerdict verdict) {
  return static_cast<int>(std::ranges::count(diff.rows, verdict, &DiffRow::verdict));
}

// "1 slower, 2 FAILED", for these verdicts.
std::string counts_text(const Diff& diff, const std::vector<ChangeVerdict>& verdicts) {
  std::vector<std::string> parts;
  for (const ChangeVerdict verdict : verdicts) {
    if (const int count = count_of(diff, verdict); count > 0)
      parts.push_back(fmt::format("{} {}", count, words(verdict)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool has_single_runs(const Diff& diff) {
  return std::ranges::any_of(diff.rows, [](const DiffRow& row) {
    return row.verdict == ChangeVerdict::inconclusive && !row.interval && row.has_ratio();
  });
}

// The number of points per verdict, and the repetitions that would decide all open ones.
std::string summary(const Diff& diff) {
  std::vector<ChangeVerdict> all;
  for (std::size_t i = 0; i < kVerdicts.size(); ++i) all.push_back(static_cast<ChangeVerdict>(i));
  std::string out = counts_text(diff, all) + "\n";
  if (has_single_runs(diff)) {
    out += "One run per side is no evidence: measure each point again, with --repetitions 3 or more.\n";
  }
  int most = 0;
  bool all_could = true;
  for (const DiffRow& row : diff.rows) {
    if (row.verdict != ChangeVerdict::inconclusive || !row.interval) continue;
    most = std::max(most, row.repetitions);
    all_could = all_could && row.could_decide;
  }
  if (most == 0) return out;
  return out + fmt::format(
                   "--repetitions {} on both sides would decide {} in nine of ten cases, if differences and spreads "
                   "stay as they are.\n",
                   most, all_could ? "them" : "those that repetitions can decide");
}

// If no points match: the reason. Then the differences that the user did not set.
std::string matching_text(const Diff& diff) {
  std::string out;
  if (!diff.mismatched.empty()) {
    out += fmt::format(
        "No point of base matches a point of new: they differ in {}. Match without an option by --ignore KEY.\n",
        fmt::join(diff.mismatched, ", "));
  }
  if (!diff.unset.empty()) {
    out += fmt::format("Matched points also differ in options that were not set: {}.\n", fmt::join(diff.unset, ", "));
  }
  return out;
}

double percent_of(double ratio) {
  return (ratio - 1) * 100;
}

std::string percent_cell(bool known, double ratio) {
  return known ? fmt::format("{:+.1f}", percent_of(ratio)) : "-";
}

// "Mops", "ns", or the key of a count.
std::string unit_of(const std::string& metric) {
  if (metric.ends_with("_per_op")) return "per op";
  const std::string title = axis_title(metric);
  const std::size_t open = title.rfind(" (");
  return open != title.npos && title.ends_with(')') ? title.substr(open + 2, title.size() - open - 3) : metric;
}

}  // namespace

std::string gate_failure(const Diff& diff, bool strict) {
  const std::string bad = counts_text(diff, {ChangeVerdict::slower, ChangeVerdict::failed});
  if (!bad.empty()) return fmt::format("{} (of {} points)", bad, diff.rows.size());
  if (!diff.mismatched.empty()) return matching_text(diff).substr(0, matching_text(diff).find('\n'));
  if (!strict || diff.identical) return "";
  const std::string open = counts_text(diff, {ChangeVerdict::inconclusive, ChangeVerdict::more, ChangeVerdict::fewer,
                                              ChangeVerdict::only_base, ChangeVerdict::only_new});
  return open.empty() ? "" : fmt::format("--strict: {} (of {} points)", open, diff.rows.size());
}

std::string diff_text(const Diff& diff, std::size_t width) {
  if (diff.identical) {
    const std::string failed = counts_text(diff, {ChangeVerdict::failed});
    return fmt::format("identical: both files have the same records ({} points{})\n", diff.rows.size(),
                       failed.empty() ? "" : ": " + failed);
  }
  const double level = diff.request.confidence * 100;
  const auto any = [&diff](auto has) { return std::ranges::any_of(diff.rows, has); };
  const bool intervals = any([](const DiffRow& row) { return row.interval.has_value(); });
  const bool open = any([](const DiffRow& row) { return runs_to_decide(row) != "-"; });
  const bool causes = any([](const DiffRow& row) { return !row.cause.empty(); });
  const std::string unit = unit_of(diff.request.metric);
  TableGroup change{"change", {{"%"}}};
  if (intervals) change = {fmt::format("change, {:g} %", level), {{"%"}, {"from"}, {"to"}}};
  std::vector<TableGroup> groups{{"", {{"point", true}}},
                                 {"base", {{unit}, {"runs"}}},
                                 {"new", {{unit}, {"runs"}}},
                                 change,
                                 {"", {{"verdict", true}}}};
  if (open) groups.push_back({"", {{.header = "decide", .top = "runs to"}}});
  if (causes) groups.push_back({"", {{"cause", true}}});
  groups.push_back({"", {{"options", true}}});
  TextTable table(groups);
  for (const DiffRow& row : diff.rows) {
    std::vector<std::string> cells{row.id,
                                   number_text(mean_of(row.base)),
                                   std::to_string(row.base.size()),
                                   number_text(mean_of(row.other)),
                                   std::to_string(row.other.size()),
                                   percent_cell(row.has_ratio(), row.ratio)};
    if (intervals) {
      cells.push_back(percent_cell(row.interval.has_value(), row.interval ? row.interval->low : 1));
      cells.push_back(percent_cell(row.interval.has_value(), row.interval ? row.interval->high : 1));
    }
    cells.push_back(words(row.verdict));
    if (open) cells.push_back(runs_to_decide(row));
    if (causes) cells.push_back(row.cause.empty() ? "-" : row.cause);
    cells.push_back(row.fabric + " " + row.title + (row.reason.empty() ? "" : ": " + row.reason));
    table.add_row(std::move(cells));
  }
  const bool counts = larger_value(diff.request.metric) == LargerValue::neither;
  const std::string meaning = fmt::format(
      "{}: by more than {:g} %; equivalent: by less. At most {:g} % of such comparisons contain a wrong verdict "
      "of either kind (Holm).\n",
      counts ? "more and fewer" : "slower and faster", diff.request.threshold_percent, 100 - level);
  const std::string base = diff.across.empty() ? "" : fmt::format("base: {}; new: see the options\n", diff.across);
  return wrap_lines(environment_text(diff.environment), width) + "\n" + base + table.text(width) +
         wrap_lines(matching_text(diff) + summary(diff) + (intervals ? meaning : ""), width);
}

Json diff_json(const Diff& diff) {
  Json points = Json::array();
  for (const DiffRow& row : diff.rows) {
    Json json{{"id", row.id},     {"title", row.title}, {"fabric", row.fabric}, {"verdict", words(row.verdict)},
              {"base", row.base}, {"new", row.other}};
    json["ratio"] = row.has_ratio() ? Json(row.ratio) : Json();
    json["change_percent"] = row.has_ratio() ? Json(percent_of(row.ratio)) : Json();
    json["low"] = row.interval ? Json(row.interval->low) : Json();
    json["high"] = row.interval ? Json(row.interval->high) : Json();
    json["runs_to_decide"] = row.could_decide ? Json(row.repetitions) : Json();
    if (!row.reason.empty()) json["reason"] = row.reason;
    if (!row.cause.empty()) json["cause"] = row.cause;
    points.push_back(std::move(json));
  }
  return Json{{"metric", diff.request.metric},
              {"threshold_percent", diff.request.threshold_percent},
              {"confidence", diff.request.confidence},
              {"identical", diff.identical},
              {"across", diff.across},
              {"apart", diff.mismatched},
              {"not_set", diff.unset},
              {"environment", environment_json(diff.environment)},
              {"points", std::move(points)}};
}

std::string diff_csv(const Diff& diff) {
  std::string out = csv_line({"id", "fabric", "title", "verdict", "metric", "base", "base_runs", "new", "new_runs",
                              "ratio", "low", "high", "change_percent", "runs_to_decide", "cause", "reason"});
  for (const DiffRow& row : diff.rows) {
    const auto interval = [&row](double RatioInterval::*end) {
      return csv_number(row.interval ? std::optional((*row.interval).*end) : std::nullopt);
    };
    const std::optional<double> ratio = row.has_ratio() ? std::optional(row.ratio) : std::nullopt;
    out +=
        csv_line({row.id, row.fabric, row.title, words(row.verdict), diff.request.metric, csv_number(mean_of(row.base)),
                  std::to_string(row.base.size()), csv_number(mean_of(row.other)), std::to_string(row.other.size()),
                  csv_number(ratio), interval(&RatioInterval::low), interval(&RatioInterval::high),
                  csv_number(ratio ? std::optional(percent_of(*ratio)) : std::nullopt),
                  row.could_decide ? std::to_string(row.repetitions) : "", row.cause, row.reason});
  }
  return out;
}

}  // namespace verbscope
