#include "analysis/diff.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "analysis/rate_changes.hpp"
#include "analysis/results_files.hpp"
#include "analysis/statistics.hpp"

namespace verbscope {
namespace {

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
        fail_usage("--ignore {}: points of {} differ only in this option ({} and {}); compare them with --across {}",
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
    row.verdict = ChangeVerdict::failed;
    row.reason = failed->reason;
  } else if (row.base.empty() || row.other.empty()) {
    row.verdict = row.base.empty() ? ChangeVerdict::only_new : ChangeVerdict::only_base;
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
std::vector<std::string> mismatched_options(const Points& base, const Points& other) {
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
void note_unset_options(const Record& base, const Record& other, const KeysOfBenchmark& keys,
                        const DiffRequest& request, std::set<std::string>& notes) {
  const MatchedBy set = matched_by(other, keys, {});
  for (const auto& [key, value] : other.config.items()) {
    const bool is_ignored = std::ranges::count(request.ignored, key) > 0;
    if (is_ignored || set.contains(key) || !is_point_option(key) || !value.is_primitive()) continue;
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
    if (row.verdict != ChangeVerdict::inconclusive) continue;
    row.ratio = geometric_mean(row.other) / geometric_mean(row.base);
    const std::optional<LogDifference> difference = log_difference(row.base, row.other);
    if (!difference) continue;
    const double half_width = std::exp(difference->half_width(confidence));
    row.interval = RatioInterval{.low = row.ratio / half_width, .high = row.ratio * half_width};
    tests.push_back({&row, *difference, claims(*difference, margin)});
  }
  return tests;
}

ChangeVerdict changed_verdict(const std::string& metric, bool larger) {
  switch (larger_value(metric)) {
    case LargerValue::faster:
      return larger ? ChangeVerdict::faster : ChangeVerdict::slower;
    case LargerValue::slower:
      return larger ? ChangeVerdict::slower : ChangeVerdict::faster;
    case LargerValue::neither:
      return larger ? ChangeVerdict::more : ChangeVerdict::fewer;
  }
  return ChangeVerdict::inconclusive;
}

// The cause of a change beyond the threshold: what the counters show more of on the slower side.
std::string cause_of(const Side& base, const Side& other, const DiffRow& row, const DiffRequest& request) {
  if (std::abs(std::log(row.ratio)) <= log_margin(request.threshold_percent)) return "";
  const bool worse = changed_verdict(request.metric, row.ratio > 1) == ChangeVerdict::slower ||
                     (larger_value(request.metric) == LargerValue::neither && row.ratio > 1);
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
      row.verdict = ChangeVerdict::equivalent;
    } else if (const auto more = repetitions_to_decide(tests[i].difference, margin, alpha, tests.size())) {
      row.could_decide = true;
      row.repetitions = *more;
    }
  }
}

}  // namespace

LargerValue larger_value(const std::string& metric) {
  const auto ends = [&metric](const char* unit) { return metric.ends_with(unit); };
  if (ends("_mops") || ends("_gbit_per_s") || ends("_mb_per_s")) return LargerValue::faster;
  return ends("_ns") || ends("_us") ? LargerValue::slower : LargerValue::neither;
}

Diff diff_records(const std::vector<Record>& base, const std::vector<Record>& other, const DiffRequest& request) {
  const KeysOfBenchmark keys = keys_of(base, other);
  const Points before(base, keys, request, "base"), after(other, keys, request, "new");
  Diff diff{.request = request,
            .environment = environment_differences(base, other),
            .rows = {},
            .unset = {},
            .mismatched = {}};
  std::vector<std::pair<const Side*, const Side*>> pairs;  // one per row
  std::set<std::string> unset;
  const auto add_lone = [&](const Side& side, ChangeVerdict verdict) {
    diff.rows.push_back(row_for(*side.runs.front()));
    diff.rows.back().verdict = verdict;
    (verdict == ChangeVerdict::only_base ? diff.rows.back().base : diff.rows.back().other) =
        side.values(request.metric);
    pairs.emplace_back(nullptr, nullptr);
  };
  for (const MatchedBy& key : before.order) {
    const Side& side = before.sides.at(key);
    const auto match = after.sides.find(key);
    if (match == after.sides.end()) {
      add_lone(side, ChangeVerdict::only_base);
      continue;
    }
    diff.rows.push_back(row_of_sides(side, match->second, request.metric));
    pairs.emplace_back(&side, &match->second);
    note_unset_options(side.shown(), match->second.shown(), keys, request, unset);
  }
  const bool none_matched =
      std::ranges::all_of(diff.rows, [](const DiffRow& row) { return row.verdict == ChangeVerdict::only_base; });
  if (none_matched) diff.mismatched = mismatched_options(before, after);
  for (const MatchedBy& key : after.order) {
    if (!before.sides.contains(key)) add_lone(after.sides.at(key), ChangeVerdict::only_new);
  }
  decide(diff.rows, request);
  for (std::size_t i = 0; i < diff.rows.size(); ++i) {
    if (pairs[i].first == nullptr || !diff.rows[i].has_ratio()) continue;
    diff.rows[i].cause = cause_of(*pairs[i].first, *pairs[i].second, diff.rows[i], request);
  }
  diff.unset.assign(unset.begin(), unset.end());
  diff.identical = same_records(base, other);
  return diff;
}

Diff diff_across(const std::vector<Record>& records, const std::string& across, DiffRequest request) {
  Condition condition{.key = across, .values = {}};
  if (across.find('=') != across.npos) condition = parse_condition(across, "--across");
  std::ranges::replace(condition.key, '-', '_');
  std::vector<std::string> values;
  for (const Record& record : records) {
    const std::string value = text_of_key(record, condition.key);
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  if (!condition.values.empty()) values = condition.values;
  if (values.size() < 2) {
    fail_usage("--across {}: expected an option with two or more values in the file, found {}", across,
               values.front() == "-" ? "none" : values.front());
  }
  const auto with = [&](const std::string& value) {
    std::vector<Record> out;
    std::ranges::copy_if(records, std::back_inserter(out),
                         [&](const Record& record) { return has_value(record, condition.key, value); });
    if (out.empty()) fail_usage("--across {}: no record has {}={}", across, condition.key, value);
    return out;
  };
  request.ignored.push_back(condition.key);
  const std::vector<Record> base = with(values.front());
  Diff all{.request = request, .environment = {}, .rows = {}, .unset = {}, .mismatched = {}};
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Diff one = diff_records(base, with(values[i]), request);
    all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    all.environment = one.environment;
    all.unset.insert(all.unset.end(), one.unset.begin(), one.unset.end());
    if (all.mismatched.empty()) all.mismatched = one.mismatched;
  }
  all.across = fmt::format("{}={}", condition.key, values.front());
  if (std::ranges::any_of(all.rows, &DiffRow::has_ratio)) all.mismatched.clear();
  // Corrects for all points together.
  for (DiffRow& row : all.rows) {
    if (row.verdict == ChangeVerdict::inconclusive || row.verdict >= ChangeVerdict::failed) continue;
    row.verdict = ChangeVerdict::inconclusive;
  }
  decide(all.rows, request);
  return all;
}

}  // namespace verbscope
