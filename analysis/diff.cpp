#include "analysis/diff.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "analysis/csv.hpp"
#include "analysis/points.hpp"
#include "analysis/text_table.hpp"

namespace verbscope {
namespace {

constexpr std::array<const char*, 6> kVerdicts{"no evidence", "slower",       "faster",
                                               "FAILED",      "only in base", "only in new"};

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
  return std::string(kSim) + std::filesystem::path(fabric.substr(kSim.size())).stem().string();
}

// The last record of each run of a point: by repetition and seed.
struct Side {
  std::vector<const Record*> runs;

  std::vector<double> rates() const {
    std::vector<double> out;
    for (const Record* run : runs) {
      const auto rate = number_at(run->result, "rate_mops");
      if (run->status == RecordStatus::ok && rate.value_or(0) > 0) out.push_back(*rate);
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

DiffRow compare_sides(const Side& base, const Side& other, double level) {
  DiffRow row = row_for(*other.runs.front());
  row.base = base.rates();
  row.other = other.rates();
  if (const Record* failed = other.failed()) {
    row.verdict = Verdict::failed;
    row.reason = failed->reason;
    return row;
  }
  if (row.base.empty() || row.other.empty()) {
    row.verdict = row.base.empty() ? Verdict::only_new : Verdict::only_base;
    return row;
  }
  row.ratio = *mean_of(row.other) / *mean_of(row.base);
  row.interval = ratio_interval(row.base, row.other, level);
  if (row.interval && row.interval->high < 1) row.verdict = Verdict::slower;
  if (row.interval && row.interval->low > 1) row.verdict = Verdict::faster;
  return row;
}

bool has_ratio(const DiffRow& row) {
  return !row.base.empty() && !row.other.empty();
}

}  // namespace

std::vector<DiffRow> diff_records(const std::vector<Record>& base, const std::vector<Record>& other, double level) {
  const Points before(base), after(other);
  std::vector<DiffRow> rows;
  for (const std::string& key : before.order) {
    const auto match = after.sides.find(key);
    if (match != after.sides.end()) {
      rows.push_back(compare_sides(before.sides.at(key), match->second, level));
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
  return rows;
}

bool within_threshold(const std::vector<DiffRow>& rows, double percent) {
  return std::ranges::none_of(rows, [percent](const DiffRow& row) {
    return row.verdict == Verdict::failed || (row.verdict == Verdict::slower && row.ratio < 1 - percent / 100);
  });
}

std::string diff_text(const std::vector<DiffRow>& rows, double level) {
  TextTable table({{"", {{"point", true}}},
                   {"base", {{"Mops"}, {"runs"}}},
                   {"new", {{"Mops"}, {"runs"}}},
                   {fmt::format("new / base, {:g} %", level * 100), {{"ratio"}, {"from"}, {"to"}}},
                   {"", {{"verdict", true}}},
                   {"", {{"options", true}}}});
  std::array<int, kVerdicts.size()> counts{};
  for (const DiffRow& row : rows) {
    ++counts[static_cast<std::size_t>(row.verdict)];
    const auto ratio = [](bool there, double value) { return there ? fmt::format("{:.4f}", value) : "-"; };
    table.add_row({row.id, number_text(mean_of(row.base)), std::to_string(row.base.size()),
                   number_text(mean_of(row.other)), std::to_string(row.other.size()), ratio(has_ratio(row), row.ratio),
                   ratio(row.interval.has_value(), row.interval ? row.interval->low : 0),
                   ratio(row.interval.has_value(), row.interval ? row.interval->high : 0), words(row.verdict),
                   row.fabric + " " + row.title + (row.reason.empty() ? "" : ": " + row.reason)});
  }
  std::string summary;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", counts[i], kVerdicts[i]);
  }
  return table.text() + summary + "\n";
}

Json diff_json(const std::vector<DiffRow>& rows) {
  Json out = Json::array();
  for (const DiffRow& row : rows) {
    Json json{{"id", row.id},     {"title", row.title}, {"fabric", row.fabric}, {"verdict", words(row.verdict)},
              {"base", row.base}, {"new", row.other}};
    json["ratio"] = has_ratio(row) ? Json(row.ratio) : Json();
    json["low"] = row.interval ? Json(row.interval->low) : Json();
    json["high"] = row.interval ? Json(row.interval->high) : Json();
    if (!row.reason.empty()) json["reason"] = row.reason;
    out.push_back(std::move(json));
  }
  return out;
}

std::string diff_csv(const std::vector<DiffRow>& rows) {
  std::string out = csv_line({"id", "fabric", "title", "verdict", "base_mops", "base_runs", "new_mops", "new_runs",
                              "ratio", "low", "high", "reason"});
  for (const DiffRow& row : rows) {
    const auto interval = [&row](double RatioInterval::*end) {
      return csv_number(row.interval ? std::optional((*row.interval).*end) : std::nullopt);
    };
    out += csv_line({row.id, row.fabric, row.title, words(row.verdict), csv_number(mean_of(row.base)),
                     std::to_string(row.base.size()), csv_number(mean_of(row.other)), std::to_string(row.other.size()),
                     csv_number(has_ratio(row) ? std::optional(row.ratio) : std::nullopt),
                     interval(&RatioInterval::low), interval(&RatioInterval::high), row.reason});
  }
  return out;
}

}  // namespace verbscope
