#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/points.hpp"
#include "common/text.hpp"
#include "harness/import/tool_output.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kPerftestBlank = " \t";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::string_view word = take_word(line, kPerftestBlank);
    if (word.empty()) return words;
    words.push_back(word);
  }
}

std::optional<double> number_in(std::string_view text) {
  const std::optional<double> value = number_from<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// True for lines around the tables that contain no figures.
bool is_frame(std::string_view line) {
  constexpr std::array<std::string_view, 9> kBegins{
      "-----",     "local address:",   "remote address:",     "GID:", "Waiting for", "SIMULATED:",
      "WARNING: ", "Test with events", "MultiCast runs on UD"};
  return line.empty() || line.starts_with('*') ||
         std::ranges::any_of(kBegins, [line](std::string_view begin) { return line.starts_with(begin); });
}

// The test named by a perftest command line, which users often keep above the table.
std::optional<PerftestTest> test_of_command(std::string_view line) {
  for (const std::string_view verb : {"write", "read", "send"}) {
    for (const std::string_view kind : {"bw", "lat"}) {
      if (line.find(fmt::format("ib_{}_{}", verb, kind)) == line.npos) continue;
      const bool latency = kind == "lat";
      return PerftestTest{.benchmark = latency ? "verb_latency" : fmt::format("{}_rate", verb),
                          .verb = latency ? std::string(verb) : "",
                          .latency = latency,
                          .bidirectional = line.find(" -b") != line.npos};
    }
  }
  return std::nullopt;
}

// The unit of a bandwidth in bytes per second. The document does not contain it: derived from the message rate.
double unit_of(const Json& values) {
  const double bytes = number_at(values, "MsgRate").value_or(0) * 1e6 * number_at(values, "MsgSize").value_or(0);
  const double average = number_at(values, "BW_average").value_or(0);
  if (!(bytes > 0) || !(average > 0)) return kPerftestMb;
  const auto distance = [&](double unit) { return std::abs(std::log(average * unit / bytes)); };
  return distance(kPerftestGb) < distance(kPerftestMb) ? kPerftestGb : kPerftestMb;
}

// Returns false if there is no rate.
bool add_rate(const Json& values, double unit, Record& record) {
  const double size = *number_at(values, "MsgSize");
  const double average = number_at(values, "BW_average").value_or(0) * unit;
  const double printed = number_at(values, "MsgRate").value_or(0);
  // Releases before 2.0 do not print the message rate.
  const double mops = printed > 0 ? printed : average / size / 1e6;
  if (!(mops > 0)) return false;
  record.config["report_gbits"] = unit == kPerftestGb;
  record.result["rate_mops"] = mops;
  if (average > 0) {
    record.result["bandwidth_gbit_per_s"] = average * 8 / 1e9;
    record.result["bandwidth_mb_per_s"] = average / 1e6;
  }
  if (const double peak = number_at(values, "BW_peak").value_or(0) * unit; peak > 0) {
    record.result["bandwidth_peak_gbit_per_s"] = peak * 8 / 1e9;
  }
  return true;
}

// Returns false if there is no latency.
bool add_latency(const Json& values, bool half, Record& record) {
  constexpr std::array<std::pair<const char*, const char*>, 7> kTimes{{{"t_min", "lat_min_ns"},
                                                                       {"t_avg", "lat_mean_ns"},
                                                                       {"t_typical", "lat_p50_ns"},
                                                                       {"percentile_99", "lat_p99_ns"},
                                                                       {"percentile_99.9", "lat_p99_9_ns"},
                                                                       {"t_max", "lat_max_ns"},
                                                                       {"t_stdev", "lat_stdev_ns"}}};
  Json latency{{"size", values.at("MsgSize")}};
  if (const auto samples = number_at(values, "n_iterations")) latency["lat_samples"] = std::llround(*samples);
  for (const auto& [theirs, ours] : kTimes) {
    if (const auto us = number_at(values, theirs)) latency[ours] = *us * 1000;
  }
  if (!latency.contains("lat_p50_ns") && !latency.contains("lat_mean_ns")) return false;
  for (const auto& [key, value] : latency.items()) {
    if (key != "size") record.result[key] = value;
  }
  record.result["trip"] = half ? "half" : "full";
  // One operation is outstanding, so the rate follows from the mean.
  if (const double mean = number_at(latency, "lat_mean_ns").value_or(0); mean > 0) {
    record.result["rate_mops"] = 1e3 / (half ? 2 * mean : mean);
  }
  record.result["latency"] = Json::array({latency});
  return true;
}

std::optional<Imported> record_of(const PerftestTest& test, const Json& facts, Json values,
                                  std::optional<double> unit) {
  const auto size = number_at(values, "MsgSize");
  if (!size || !(*size >= 1)) return std::nullopt;
  values["MsgSize"] = std::llround(*size);
  Imported out{.record = {}, .tool = "perftest"};
  Record& record = out.record;
  record.benchmark = test.benchmark;
  record.status = RecordStatus::imported;
  if (!test.verb.empty()) record.config["verb"] = test.verb;
  record.config["size"] = values["MsgSize"];
  for (const auto& [key, value] : facts.items()) {
    const PerftestFact* const fact = perftest_fact(key);
    if (fact == nullptr) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const bool simulated = std::string_view(fact->option) == "ib_dev" && text.starts_with("sim:");
    if (simulated) out.fabric = text;
    const bool fits = fact->kind == PerftestFact::Kind::number ? value.is_number() : value.is_string();
    if (fits && !simulated) {
      record.config[fact->option] = value.is_number() ? Json(std::llround(value.get<double>())) : value;
    }
  }
  if (!test.latency) record.config["bidirectional"] = test.bidirectional;
  if (test.immediate) record.config["write_with_imm"] = true;
  const bool atomic = test.verb == "fetch_add" || test.verb == "compare_swap";
  const bool half = test.verb != "read" && !atomic;
  if (!(test.latency ? add_latency(values, half, record) : add_rate(values, unit.value_or(unit_of(values)), record))) {
    return std::nullopt;
  }
  if (const auto iterations = number_at(values, "n_iterations")) record.result["ops"] = std::llround(*iterations);
  if (const auto load = number_at(values, "CPU_util")) record.result["cpu_percent"] = *load;
  return out;
}

}  // namespace

bool PerftestTable::read_line(std::string_view line, std::vector<Imported>& out) {
  line = trimmed(line, kPerftestBlank);
  return read_header(line) || read_row(line, out) || read_title(line) || is_frame(line) || read_facts(line);
}

bool PerftestTable::read_title(std::string_view line) {
  auto test = perftest_test(line);
  const bool is_title = test.has_value();
  if (!is_title) test = test_of_command(line);
  if (!test) return false;
  test_ = test;
  facts_ = Json::object();
  columns_.clear();
  return true;
}

// "Number of qps   : 4		Transport type : IB"
bool PerftestTable::read_facts(std::string_view line) {
  bool known = false;
  while (!line.empty()) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) break;
    const std::string_view label = trimmed(line.substr(0, colon), kPerftestBlank);
    line = trimmed(line.substr(colon + 1), kPerftestBlank);
    const std::size_t end = std::min({line.size(), line.find('\t'), line.find("  ")});
    std::string_view value = line.substr(0, end);
    line = trimmed(line.substr(end), kPerftestBlank);
    if (!is_perftest_fact(label)) return known;
    known = true;
    const PerftestFact* const fact = perftest_fact(label);
    if (fact == nullptr) continue;
    value = value.substr(0, value.find("[B]"));
    if (fact->kind == PerftestFact::Kind::text) {
      facts_[fact->key] = std::string(value);
    } else if (const auto number = number_in(value)) {
      facts_[fact->key] = *number;
    }
  }
  return known;
}

bool PerftestTable::read_header(std::string_view line) {
  if (!line.starts_with("#bytes")) return false;
  std::vector<std::pair<std::size_t, Column>> found;
  for (const PerftestColumn& column : perftest_columns()) {
    const std::size_t at = line.find(column.header);
    if (at == line.npos) continue;
    const std::size_t begin = at + std::string_view(column.header).size();
    const bool has_unit = line[begin - 1] == '[';
    found.emplace_back(
        at, Column{column.key, std::string(has_unit ? line.substr(begin, line.find(']', begin) - begin) : "")});
  }
  std::ranges::sort(found, {}, &std::pair<std::size_t, Column>::first);
  columns_.clear();
  for (auto& [at, column] : found) columns_.push_back(std::move(column));
  return true;
}

bool PerftestTable::read_row(std::string_view line, std::vector<Imported>& out) {
  const std::vector<std::string_view> words = words_of(line);
  // Unknown columns may follow, such as tps or CPU use.
  if (columns_.size() < 3 || words.size() < columns_.size()) return false;
  Json values = Json::object();
  std::optional<double> unit;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto number = number_in(words[i]);
    if (!number) return false;
    if (i >= columns_.size()) continue;
    const Column& column = columns_[i];
    values[column.key] = *number;
    if (column.key == "BW_average") unit = column.unit.starts_with("Gb") ? kPerftestGb : kPerftestMb;
    if (column.key.starts_with("t_") && column.unit != "usec") return false;
  }
  // Without a title, the columns give the kind of test but not the verb.
  PerftestTest test{.benchmark = unit ? "perftest_bw" : "perftest_lat", .latency = !unit};
  if (test_ && test_->latency == test.latency) test = *test_;
  auto record = record_of(test, facts_, std::move(values), unit);
  if (!record) return false;
  out.push_back(std::move(*record));
  return true;
}

std::optional<Imported> perftest_record(const Json& document) {
  const auto info = document.find("test_info");
  const auto results = document.find("results");
  if (info == document.end() || !info->is_object() || results == document.end() || !results->is_object()) {
    return std::nullopt;
  }
  const auto test = perftest_test(text_at(*info, "test"));
  return test ? record_of(*test, *info, *results, std::nullopt) : std::nullopt;
}

}  // namespace verbscope
