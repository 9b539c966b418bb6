#include "analysis/diff.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "analysis/axis_title.hpp"
#include "analysis/change.hpp"
#include "analysis/counted_cause.hpp"
#include "analysis/csv.hpp"
#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "analysis/sources.hpp"
#include "analysis/text_table.hpp"
#include "analysis/where.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr std::array<const char*, 9> kVerdicts{"inconclusive", "equivalent", "slower",       "faster",     "more",
                                               "fewer",        "FAILED",     "only in base", "only in new"};

const char* words(Verdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

// Meaning of a larger value of the metric.
enum class Sense { faster, slower, neither };

Sense sense_of(const std::string& metric) {
  const auto ends = [&metric](const char* unit) { return metric.ends_with(unit); };
  if (ends("_mops") || ends("_gbit_per_s") || ends("_mb_per_s")) return Sense::faster;
  return ends("_ns") || ends("_us") ? Sense::slower : Sense::neither;
}

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The keys by which points are matched, with their values: benchmark, fabric ("sim:/a/cib.json" matches "sim:cib") and
// the describing options.
using MatchedBy = std::map<std::string, std::string>;

// The describing options of all records of a benchmark. An option that one record sets to the default of another one
// does not separate the two.
using KeysOfBenchmark = std::map<std::string, std::set<std::string>>;

KeysOfBenchmark keys_of(const std::vector<Record>& base, const std::vector<Record>& other) {
  KeysOfBenchmark keys;
  for (const std::vector<Record>* side : {&base, &other}) {
    for (const Record& record : *side) {
      for (std::string& key : option_keys(record)) keys[record.benchmark].insert(std::move(key));
    }
  }
  return keys;
}

MatchedBy matched_by(const Record& record, const KeysOfBenchmark& keys, const std::vector<std::string>& ignored) {
  MatchedBy out{{"benchmark", record.benchmark}, {"fabric", fabric_name(record)}};
  for (const std::string& key : keys.at(record.benchmark)) out[key] = option_text(record, key);
  for (const std::string& key : ignored) out.erase(key);
  return out;
}

// The runs of a point: the last record for each repetition and seed.
struct Side {
  std::vector<const Record*> runs;

  std::vector<double> values(const std::string& metric) const {
    std::vector<double> out;
    for (const Record* run : runs) {
      const auto value = result_number(*run, metric);
      if (run->status != RecordStatus::failed && value.value_or(0) > 0) out.push_back(*value);
    }
    return out;
  }
  const Record* failed() const {
    const auto found = std::ranges::find(runs, RecordStatus::failed, &Record::status);
    return found == runs.end() ? nullptr : *found;
  }
  // The first run that did not fail, else the first.
  const Record& shown() const {
    const auto found =
        std::ranges::find_if(runs, [](const Record* run) { return run->status != RecordStatus::failed; });
    return found == runs.end() ? *runs.front() : **found;
  }
};

struct Points {
  Points(const std::vector<Record>& records, const KeysOfBenchmark& keys, const DiffRequest& request,
         const char* name) {
    for (const Record* record : last_of_each_point(records)) {
      const MatchedBy key = matched_by(*record, keys, request.ignored);
      if (!sides.contains(key)) order.push_back(key);
      Side& side = sides[key];
      for (const std::string& ignored : request.ignored) {
        if (side.runs.empty() || text_of_key(*record, ignored) == text_of_key(*side.runs.front(), ignored)) continue;
        fail_usage("--ignore {}: {} has points that differ in nothing else: {} and {}; compare them with --across {}",
                   ignored, name, text_of_key(*side.runs.front(), ignored), text_of_key(*record, ignored), ignored);
      }
      side.runs.push_back(record);
    }
  }

  std::vector<MatchedBy> order;
  std::map<MatchedBy, Side> sides;
};

DiffRow row_for(const Record& record) {
  DiffRow row;
  row.id = point_id(record);
  row.title = point_title(record);
  row.fabric = fabric_name(record);
  return row;
}

DiffRow row_of_sides(const Side& base, const Side& other, const std::string& metric) {
  DiffRow row = row_for(*other.runs.front());
  row.base = base.values(metric);
  row.other = other.values(metric);
  if (const Record* failed = other.failed()) {
    row.verdict = Verdict::failed;
    row.reason = failed->reason;
  } else if (row.base.empty() || row.other.empty()) {
    row.verdict = row.base.empty() ? Verdict::only_new : Verdict::only_base;
  }
  return row;
}

std::vector<std::string> differing_keys(const MatchedBy& one, const MatchedBy& other) {
  std::vector<std::string> keys;
  const auto value = [](const MatchedBy& of, const std::string& key) {
    const auto found = of.find(key);
    return found == of.end() ? std::string() : found->second;
  };
  std::set<std::string> all;
  for (const auto& [key, text] : one) all.insert(key);
  for (const auto& [key, text] : other) all.insert(key);
  std::ranges::copy_if(all, std::back_inserter(keys),
                       [&](const auto& key) { return value(one, key) != value(other, key); });
  return keys;
}

// The options in which the points of base differ from the most similar points of new, with the values of both sides.
std::vector<std::string> apart(const Points& base, const Points& other) {
  std::map<std::string, std::pair<std::set<std::string>, std::set<std::string>>> values;
  for (const MatchedBy& point : base.order) {
    const auto nearest = std::ranges::min_element(
        other.order, {}, [&point](const MatchedBy& each) { return differing_keys(point, each).size(); });
    if (nearest == other.order.end()) continue;
    for (const std::string& key : differing_keys(point, *nearest)) {
      values[key].first.insert(text_of_key(*base.sides.at(point).runs.front(), key));
      values[key].second.insert(text_of_key(*other.sides.at(*nearest).runs.front(), key));
    }
  }
  std::vector<std::string> out;
  for (const auto& [key, both] : values) {
    if (both.first == both.second) continue;
    out.push_back(fmt::format("{} (base {}, new {})", key, fmt::join(both.first, " "), fmt::join(both.second, " ")));
  }
  return out;
}

// Collects options that the user did not set and that differ between two matched runs: the program chose the value or
// has another default.
void note_not_set(const Record& base, const Record& other, const KeysOfBenchmark& keys, const DiffRequest& request,
                  std::set<std::string>& notes) {
  const MatchedBy set = matched_by(other, keys, {});
  for (const auto& [key, value] : other.config.items()) {
    const bool is_asked = std::ranges::count(request.ignored, key) > 0;
    if (is_asked || set.contains(key) || !says_what_runs(key) || !value.is_primitive()) continue;
    const std::string before = option_text(base, key), after = option_text(other, key);
    if (before != after) notes.insert(fmt::format("{} {} -> {}", key, before, after));
  }
}

bool same_records(const std::vector<Record>& base, const std::vector<Record>& other) {
  return std::ranges::equal(base, other,
                            [](const Record& one, const Record& two) { return to_json(one) == to_json(two); });
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value / values.front());
  return values.front() * std::exp(sum / static_cast<double>(values.size()));
}

// A row whose verdict follows from a test of its samples.
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

Verdict changed_verdict(const std::string& metric, bool larger) {
  switch (sense_of(metric)) {
    case Sense::faster:
      return larger ? Verdict::faster : Verdict::slower;
    case Sense::slower:
      return larger ? Verdict::slower : Verdict::faster;
    case Sense::neither:
      return larger ? Verdict::more : Verdict::fewer;
  }
  return Verdict::inconclusive;
}

// The cause of a change beyond the threshold: what the counters show more of on the slower side.
std::string cause_of(const Side& base, const Side& other, const DiffRow& row, const DiffRequest& request) {
  if (std::abs(std::log(row.ratio)) <= log_margin(request.threshold_percent)) return "";
  const bool worse = changed_verdict(request.metric, row.ratio > 1) == Verdict::slower ||
                     (sense_of(request.metric) == Sense::neither && row.ratio > 1);
  const Record &from = worse ? base.shown() : other.shown(), &to = worse ? other.shown() : base.shown();
  const auto cause = counted_cause(from, to);
  if (!cause) return "";
  return worse ? *cause : "base: " + *cause;
}

// Corrects each kind of claim for the number of points that allow it.
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
      row.verdict = changed_verdict(request.metric, tests[i].difference.estimate > 0);
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

// Table cell for a point without a verdict: the number of repetitions that would decide.
std::string runs_to_decide(const DiffRow& row) {
  if (row.verdict != Verdict::inconclusive || !row.interval) return "-";
  return row.could_decide ? std::to_string(row.repetitions) : fmt::format("> {}", kMaxRepetitions);
}

int count_of(const Diff& diff, Verdict verdict) {
  return static_cast<int>(std::ranges::count(diff.rows, verdict, &DiffRow::verdict));
}

// "1 slower, 2 FAILED", for these verdicts.
std::string counts_text(const Diff& diff, const std::vector<Verdict>& verdicts) {
  std::vector<std::string> parts;
  for (const Verdict verdict : verdicts) {
    if (const int count = count_of(diff, verdict); count > 0)
      parts.push_back(fmt::format("{} {}", count, words(verdict)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool has_single_runs(const Diff& diff) {
  return std::ranges::any_of(diff.rows, [](const DiffRow& row) {
    return row.verdict == Verdict::inconclusive && !row.interval && has_ratio(row);
  });
}

// The number of points per verdict, and the repetitions that would decide all open ones.
std::string summary(const Diff& diff) {
  std::vector<Verdict> all;
  for (std::size_t i = 0; i < kVerdicts.size(); ++i) all.push_back(static_cast<Verdict>(i));
  std::string out = counts_text(diff, all) + "\n";
  if (has_single_runs(diff)) {
    out += "One run per side is no evidence: measure each point again, with --repetitions 3 or more.\n";
  }
  int most = 0;
  bool all_could = true;
  for (const DiffRow& row : diff.rows) {
    if (row.verdict != Verdict::inconclusive || !row.interval) continue;
    most = std::max(most, row.repetitions);
    all_could = all_could && row.could_decide;
  }
  if (most == 0) return out;
  return out + fmt::format(
                   "{} would be decided nine times in ten by --repetitions {} on both sides, were differences and "
                   "spreads as seen here.\n",
                   all_could ? "All" : "All but those that no number of repetitions decides", most);
}

// If no points match: the reason. Then the differences that the user did not set.
std::string partners_text(const Diff& diff) {
  std::string out;
  if (!diff.apart.empty()) {
    out += fmt::format(
        "No point of base has a partner in new: they differ in {}. Match without an option by --ignore KEY.\n",
        fmt::join(diff.apart, ", "));
  }
  if (!diff.not_set.empty()) {
    out += fmt::format("Matched points also differ in options that were not set: {}.\n", fmt::join(diff.not_set, ", "));
  }
  return out;
}

double percent_of(double ratio) {
  return (ratio - 1) * 100;
}

std::string percent_cell(bool there, double ratio) {
  return there ? fmt::format("{:+.1f}", percent_of(ratio)) : "-";
}

// "Mops", "ns", or the key of a count.
std::string unit_of(const std::string& metric) {
  if (metric.ends_with("_per_op")) return "per op";
  const std::string title = axis_title(metric);
  const std::size_t open = title.rfind(" (");
  return open != title.npos && title.ends_with(')') ? title.substr(open + 2, title.size() - open - 3) : metric;
}

}  // namespace

Diff diff_records(const std::vector<Record>& base, const std::vector<Record>& other, const DiffRequest& request) {
  const KeysOfBenchmark keys = keys_of(base, other);
  const Points before(base, keys, request, "base"), after(other, keys, request, "new");
  Diff diff{
      .request = request, .environment = environment_differences(base, other), .rows = {}, .not_set = {}, .apart = {}};
  std::vector<std::pair<const Side*, const Side*>> pairs;  // one per row
  std::set<std::string> not_set;
  const auto add_lone = [&](const Side& side, Verdict verdict) {
    diff.rows.push_back(row_for(*side.runs.front()));
    diff.rows.back().verdict = verdict;
    (verdict == Verdict::only_base ? diff.rows.back().base : diff.rows.back().other) = side.values(request.metric);
    pairs.emplace_back(nullptr, nullptr);
  };
  for (const MatchedBy& key : before.order) {
    const Side& side = before.sides.at(key);
    const auto match = after.sides.find(key);
    if (match == after.sides.end()) {
      add_lone(side, Verdict::only_base);
      continue;
    }
    diff.rows.push_back(row_of_sides(side, match->second, request.metric));
    pairs.emplace_back(&side, &match->second);
    note_not_set(side.shown(), match->second.shown(), keys, request, not_set);
  }
  const bool no_partner =
      std::ranges::all_of(diff.rows, [](const DiffRow& row) { return row.verdict == Verdict::only_base; });
  if (no_partner) diff.apart = apart(before, after);
  for (const MatchedBy& key : after.order) {
    if (!before.sides.contains(key)) add_lone(after.sides.at(key), Verdict::only_new);
  }
  decide(diff.rows, request);
  for (std::size_t i = 0; i < diff.rows.size(); ++i) {
    if (pairs[i].first == nullptr || !has_ratio(diff.rows[i])) continue;
    diff.rows[i].cause = cause_of(*pairs[i].first, *pairs[i].second, diff.rows[i], request);
  }
  diff.not_set.assign(not_set.begin(), not_set.end());
  diff.identical = same_records(base, other);
  return diff;
}

Diff diff_across(const std::vector<Record>& records, const std::string& across, DiffRequest request) {
  Condition asked{.key = across, .values = {}};
  if (across.find('=') != across.npos) asked = parse_condition(across, "--across");
  std::ranges::replace(asked.key, '-', '_');
  std::vector<std::string> values;
  for (const Record& record : records) {
    const std::string value = text_of_key(record, asked.key);
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  if (!asked.values.empty()) values = asked.values;
  if (values.size() < 2) {
    fail_usage("--across {}: expected an option with two values in the file, it has {}", across,
               values.front() == "-" ? "none" : values.front());
  }
  const auto with = [&](const std::string& value) {
    std::vector<Record> out;
    std::ranges::copy_if(records, std::back_inserter(out),
                         [&](const Record& record) { return has_value(record, asked.key, value); });
    if (out.empty()) fail_usage("--across {}: no record has {}={}", across, asked.key, value);
    return out;
  };
  request.ignored.push_back(asked.key);
  const std::vector<Record> base = with(values.front());
  Diff all{.request = request, .environment = {}, .rows = {}, .not_set = {}, .apart = {}};
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Diff one = diff_records(base, with(values[i]), request);
    all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    all.environment = one.environment;
    all.not_set.insert(all.not_set.end(), one.not_set.begin(), one.not_set.end());
    if (all.apart.empty()) all.apart = one.apart;
  }
  all.across = fmt::format("{}={}", asked.key, values.front());
  if (std::ranges::any_of(all.rows, has_ratio)) all.apart.clear();
  // Corrects for all points together.
  for (DiffRow& row : all.rows) {
    if (row.verdict == Verdict::inconclusive || row.verdict >= Verdict::failed) continue;
    row.verdict = Verdict::inconclusive;
  }
  decide(all.rows, request);
  return all;
}

std::string gate_failure(const Diff& diff, bool strict) {
  const std::string bad = counts_text(diff, {Verdict::slower, Verdict::failed});
  if (!bad.empty()) return fmt::format("of {} points: {}", diff.rows.size(), bad);
  if (!diff.apart.empty()) return partners_text(diff).substr(0, partners_text(diff).find('\n'));
  if (!strict || diff.identical) return "";
  const std::string open =
      counts_text(diff, {Verdict::inconclusive, Verdict::more, Verdict::fewer, Verdict::only_base, Verdict::only_new});
  return open.empty() ? "" : fmt::format("--strict: of {} points: {}", diff.rows.size(), open);
}

std::string diff_text(const Diff& diff, std::size_t width) {
  if (diff.identical) {
    const std::string failed = counts_text(diff, {Verdict::failed});
    return fmt::format("identical: both files have the same records, of {} points{}\n", diff.rows.size(),
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
                                   percent_cell(has_ratio(row), row.ratio)};
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
  const bool counts = sense_of(diff.request.metric) == Sense::neither;
  const std::string meaning = fmt::format(
      "{}: by more than {:g} %; equivalent: by less, for sure. Together wrong in at most {:g} % of such "
      "comparisons, each way (Holm).\n",
      counts ? "more and fewer" : "slower and faster", diff.request.threshold_percent, 100 - level);
  const std::string base = diff.across.empty() ? "" : fmt::format("base: {}, new: as its options say\n", diff.across);
  return wrap_lines(environment_text(diff.environment), width) + "\n" + base + table.text(width) +
         wrap_lines(partners_text(diff) + summary(diff) + (intervals ? meaning : ""), width);
}

Json diff_json(const Diff& diff) {
  Json points = Json::array();
  for (const DiffRow& row : diff.rows) {
    Json json{{"id", row.id},     {"title", row.title}, {"fabric", row.fabric}, {"verdict", words(row.verdict)},
              {"base", row.base}, {"new", row.other}};
    json["ratio"] = has_ratio(row) ? Json(row.ratio) : Json();
    json["change_percent"] = has_ratio(row) ? Json(percent_of(row.ratio)) : Json();
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
              {"apart", diff.apart},
              {"not_set", diff.not_set},
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
    const std::optional<double> ratio = has_ratio(row) ? std::optional(row.ratio) : std::nullopt;
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
