#include "analysis/diff.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/change.hpp"
#include "analysis/csv.hpp"
#include "analysis/points.hpp"
#include "analysis/sources.hpp"
#include "analysis/text_table.hpp"
#include "analysis/where.hpp"
#include "common/words.hpp"

namespace verbscope {
namespace {

constexpr std::array<const char*, 7> kVerdicts{"inconclusive", "equivalent",   "slower",     "faster",
                                               "FAILED",       "only in base", "only in new"};

const char* words(Verdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// "sim:/a/cib.json" is another run of "sim:cib".
std::string fabric_name(const Record& record) {
  const auto fabric = record.environment.value("fabric", "");
  constexpr std::string_view kSim = "sim:";
  if (!fabric.starts_with(kSim)) return fabric;
  return std::string(kSim) + short_fabric(fabric);
}

// The last record of each run of a point: by repetition and seed.
struct Side {
  std::vector<const Record*> runs;

  std::vector<double> rates() const {
    std::vector<double> out;
    for (const Record* run : runs) {
      const auto rate = number_at(run->result, "rate_mops");
      if (run->status != RecordStatus::failed && rate.value_or(0) > 0) out.push_back(*rate);
    }
    return out;
  }
  const Record* failed() const {
    const auto found = std::ranges::find(runs, RecordStatus::failed, &Record::status);
    return found == runs.end() ? nullptr : *found;
  }
};

struct Points {
  explicit Points(const std::vector<Record>& records) {
    for (const Record* record : last_of_each_point(records)) {
      const std::string key = fabric_name(*record) + " " + repeated_key(*record);
      if (!sides.contains(key)) order.push_back(key);
      sides[key].runs.push_back(record);
    }
  }

  std::vector<std::string> order;
  std::map<std::string, Side> sides;
};

DiffRow row_for(const Record& record) {
  DiffRow row;
  row.id = point_id(record);
  row.title = point_title(record);
  row.fabric = fabric_name(record);
  return row;
}

DiffRow row_of_sides(const Side& base, const Side& other) {
  DiffRow row = row_for(*other.runs.front());
  row.base = base.rates();
  row.other = other.rates();
  if (const Record* failed = other.failed()) {
    row.verdict = Verdict::failed;
    row.reason = failed->reason;
  } else if (row.base.empty() || row.other.empty()) {
    row.verdict = row.base.empty() ? Verdict::only_new : Verdict::only_base;
  }
  return row;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value / values.front());
  return values.front() * std::exp(sum / static_cast<double>(values.size()));
}

// A row whose verdict follows from its samples.
struct Tested {
  DiffRow* row;
  LogDifference difference;
  Claims claims;
};

std::vector<Tested> tests_of(std::vector<DiffRow>& rows, double margin, double confidence) {
  std::vector<Tested> tests;
  for (DiffRow& row : rows) {
    if (row.verdict != Verdict::inconclusive) continue;
    row.ratio = geometric_mean(row.other) / geometric_mean(row.base);
    const std::optional<LogDifference> difference = log_difference(row.base, row.other);
    if (!difference) continue;
    const double reach = std::exp(difference->reach(confidence));
    row.interval = RatioInterval{.low = row.ratio / reach, .high = row.ratio * reach};
    tests.push_back({&row, *difference, claims(*difference, margin)});
  }
  return tests;
}

// Each kind of claim is corrected for the number of points at which it could be made.
void decide(std::vector<DiffRow>& rows, const DiffRequest& request) {
  const double margin = log_margin(request.threshold_percent), alpha = 1 - request.confidence;
  const std::vector<Tested> tests = tests_of(rows, margin, request.confidence);
  std::vector<double> changed, equivalent;
  for (const Tested& test : tests) {
    changed.push_back(test.claims.changed);
    equivalent.push_back(test.claims.equivalent);
  }
  const std::vector<bool> is_changed = holm_rejections(changed, alpha),
                          is_equivalent = holm_rejections(equivalent, alpha);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    DiffRow& row = *tests[i].row;
    if (is_changed[i]) {
      row.verdict = tests[i].difference.estimate < 0 ? Verdict::slower : Verdict::faster;
    } else if (is_equivalent[i]) {
      row.verdict = Verdict::equivalent;
    } else if (const auto more = repetitions_to_decide(tests[i].difference, margin, alpha, tests.size())) {
      row.could_decide = true;
      row.repetitions = *more;
    }
  }
}

bool has_ratio(const DiffRow& row) {
  return !row.base.empty() && !row.other.empty();
}

// What the table says of a point that has no verdict yet.
std::string runs_to_decide(const DiffRow& row) {
  if (row.verdict != Verdict::inconclusive) return "-";
  if (!row.interval) return ">= 2";
  return row.could_decide ? std::to_string(row.repetitions) : fmt::format("> {}", kMostRepetitions);
}

// How many points have each verdict, and the repetitions with which none would be left open.
std::string summary(const Diff& diff) {
  std::array<int, kVerdicts.size()> counts{};
  int most = 0;
  bool all_could = true;
  for (const DiffRow& row : diff.rows) {
    ++counts[static_cast<std::size_t>(row.verdict)];
    if (row.verdict != Verdict::inconclusive) continue;
    most = std::max(most, row.repetitions);
    all_could = all_could && row.could_decide;
  }
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", counts[i], kVerdicts[i]);
  }
  out += "\n";
  if (most == 0) return out;
  return out + fmt::format(
                   "{} would be decided nine times in ten by --repetitions {} on both sides, were differences and "
                   "spreads as seen here.\n",
                   all_could ? "All" : "All but those that no number of repetitions decides", most);
}

}  // namespace

Diff diff_records(const std::vector<Record>& base, const std::vector<Record>& other, const DiffRequest& request) {
  const Points before(base), after(other);
  std::vector<DiffRow> rows;
  for (const std::string& key : before.order) {
    const auto match = after.sides.find(key);
    if (match != after.sides.end()) {
      rows.push_back(row_of_sides(before.sides.at(key), match->second));
      continue;
    }
    rows.push_back(row_for(*before.sides.at(key).runs.front()));
    rows.back().base = before.sides.at(key).rates();
    rows.back().verdict = Verdict::only_base;
  }
  for (const std::string& key : after.order) {
    if (before.sides.contains(key)) continue;
    rows.push_back(row_for(*after.sides.at(key).runs.front()));
    rows.back().other = after.sides.at(key).rates();
    rows.back().verdict = Verdict::only_new;
  }
  decide(rows, request);
  return {request, environment_differences(base, other), std::move(rows)};
}

bool passes(const Diff& diff, bool strict) {
  return std::ranges::all_of(diff.rows, [strict](const DiffRow& row) {
    if (row.verdict == Verdict::equivalent || row.verdict == Verdict::faster) return true;
    return !strict && row.verdict != Verdict::slower && row.verdict != Verdict::failed;
  });
}

std::string diff_text(const Diff& diff, std::size_t width) {
  const double level = diff.request.confidence * 100;
  TextTable table({{"", {{"point", true}}},
                   {"base", {{"Mops"}, {"runs"}}},
                   {"new", {{"Mops"}, {"runs"}}},
                   {fmt::format("new / base, {:g} %", level), {{"ratio"}, {"from"}, {"to"}}},
                   {"", {{"verdict", true}}},
                   {"", {{.header = "decide", .top = "runs to"}}},
                   {"", {{"options", true}}}});
  for (const DiffRow& row : diff.rows) {
    const auto ratio = [](bool there, double value) { return there ? fmt::format("{:.4f}", value) : "-"; };
    table.add_row({row.id, number_text(mean_of(row.base)), std::to_string(row.base.size()),
                   number_text(mean_of(row.other)), std::to_string(row.other.size()), ratio(has_ratio(row), row.ratio),
                   ratio(row.interval.has_value(), row.interval ? row.interval->low : 0),
                   ratio(row.interval.has_value(), row.interval ? row.interval->high : 0), words(row.verdict),
                   runs_to_decide(row), row.fabric + " " + row.title + (row.reason.empty() ? "" : ": " + row.reason)});
  }
  const std::string meaning = fmt::format(
      "slower and faster: by more than {:g} %; equivalent: by less, for sure. Together wrong in at most {:g} % of such "
      "comparisons, each way (Holm).\n",
      diff.request.threshold_percent, 100 - level);
  return wrap_lines(environment_text(diff.environment), width) + "\n" + table.text(width) +
         wrap_lines(summary(diff) + meaning, width);
}

Json diff_json(const Diff& diff) {
  Json points = Json::array();
  for (const DiffRow& row : diff.rows) {
    Json json{{"id", row.id},     {"title", row.title}, {"fabric", row.fabric}, {"verdict", words(row.verdict)},
              {"base", row.base}, {"new", row.other}};
    json["ratio"] = has_ratio(row) ? Json(row.ratio) : Json();
    json["low"] = row.interval ? Json(row.interval->low) : Json();
    json["high"] = row.interval ? Json(row.interval->high) : Json();
    json["runs_to_decide"] = row.could_decide ? Json(row.repetitions) : Json();
    if (!row.reason.empty()) json["reason"] = row.reason;
    points.push_back(std::move(json));
  }
  return Json{{"threshold_percent", diff.request.threshold_percent},
              {"confidence", diff.request.confidence},
              {"environment", environment_json(diff.environment)},
              {"points", std::move(points)}};
}

std::string diff_csv(const Diff& diff) {
  std::string out = csv_line({"id", "fabric", "title", "verdict", "base_mops", "base_runs", "new_mops", "new_runs",
                              "ratio", "low", "high", "runs_to_decide", "reason"});
  for (const DiffRow& row : diff.rows) {
    const auto interval = [&row](double RatioInterval::*end) {
      return csv_number(row.interval ? std::optional((*row.interval).*end) : std::nullopt);
    };
    out +=
        csv_line({row.id, row.fabric, row.title, words(row.verdict), csv_number(mean_of(row.base)),
                  std::to_string(row.base.size()), csv_number(mean_of(row.other)), std::to_string(row.other.size()),
                  csv_number(has_ratio(row) ? std::optional(row.ratio) : std::nullopt), interval(&RatioInterval::low),
                  interval(&RatioInterval::high), row.could_decide ? std::to_string(row.repetitions) : "", row.reason});
  }
  return out;
}

}  // namespace verbscope
