#include "harness/import/import_files.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "analysis/points.hpp"
#include "common/files.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"
#include "counters/tool_formats.hpp"
#include "harness/import/tool_output.hpp"

namespace verbscope {
namespace {

constexpr const char* kKnownFormats =
    "the tables and JSON of perftest, the tables of ucx_perftest, and the CSV of pcm-pcie and pcm-iio";

// Reads one file from the beginning to the end.
class FileImport {
 public:
  FileImport(std::string name, double interval_s) : name_(std::move(name)) {
    readers_.push_back(std::make_unique<PerftestTable>());
    readers_.push_back(std::make_unique<UcxOutput>());
    readers_.push_back(std::make_unique<PcmCsv>("pcm-pcie", std::make_unique<PcmPcieFormat>(), interval_s));
    readers_.push_back(std::make_unique<PcmCsv>("pcm-iio", std::make_unique<PcmIioFormat>(), interval_s));
  }

  std::vector<Imported> read(std::string_view text) {
    while (!text.empty()) text.remove_prefix(read_next(text));
    for (const auto& reader : readers_) reader->finish(out_);
    report_unknown();
    return std::move(out_);
  }

 private:
  // Reads a line or a JSON document at the beginning of `text`. Returns its length.
  std::size_t read_next(std::string_view text) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    const std::size_t length = newline == text.npos ? text.size() : newline + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::size_t taken = read_document(line, text); taken > 0) return taken;
    ++lines_;
    if (line.find_first_not_of(" \t") != line.npos && !pass_to_readers(line)) {
      if (unknown_++ == 0) first_unknown_ = {lines_, std::string(line)};
    }
    return length;
  }

  // Returns the length of the document, or 0 if none begins here.
  std::size_t read_document(std::string_view line, std::string_view text) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos || line[begin] != '{') return 0;
    text.remove_prefix(begin);
    const auto document = read_loose_json(text);
    if (!document) return 0;
    if (document->value.contains("schema")) {
      fail("{}: line {} is a verbscope record: the file needs no import", name_, lines_ + 1);
    }
    auto record = perftest_record(document->value);
    if (!record) return 0;
    out_.push_back(std::move(*record));
    lines_ += static_cast<std::size_t>(std::ranges::count(text.substr(0, document->length), '\n'));
    return begin + document->length;
  }

  bool pass_to_readers(std::string_view line) {
    for (const auto& reader : readers_) {
      try {
        if (reader->read_line(line, out_)) return true;
      } catch (const Error& error) {
        if (refused_.empty()) refused_ = error.what();
        return false;
      }
    }
    return false;
  }

  void report_unknown() const {
    if (out_.empty()) {
      const std::string why = !refused_.empty() ? refused_
                              : unknown_ == 0   ? "it has no row of results"
                                                : fmt::format("line {} is unknown: {}", first_unknown_.first,
                                                              dump_json(first_unknown_.second.substr(0, kShown)));
      fail("{}: nothing to import: {}; known formats: {}", name_, why, kKnownFormats);
    }
    if (unknown_ == 0) return;
    warn(fmt::format("{}: skipped {} of {} lines, which are unknown; the first is line {}: {}", name_, unknown_, lines_,
                     first_unknown_.first, dump_json(first_unknown_.second.substr(0, kShown))));
  }

  static constexpr std::size_t kShown = 60;

  std::string name_;
  std::vector<std::unique_ptr<ToolOutput>> readers_;
  std::vector<Imported> out_;
  std::size_t lines_ = 0, unknown_ = 0;
  std::pair<std::size_t, std::string> first_unknown_;
  std::string refused_;  // why a header was refused
};

std::uint64_t events_of(const CounterReport& report) {
  std::uint64_t sum = 0;
  PcieCounts::each(report.events, [&sum](const char*, std::uint64_t value) { sum += value; });
  return sum;
}

// Adds up the reports of the intervals.
CounterReport sum_of(const std::vector<const CounterReport*>& intervals, std::size_t left_out) {
  CounterReport sum = *intervals.front();
  Json& raw = sum.extra["raw"];
  for (std::size_t i = 1; i < intervals.size(); ++i) {
    std::map<std::string, std::uint64_t> more;
    PcieCounts::each(intervals[i]->events, [&more](const char* name, std::uint64_t value) { more[name] = value; });
    PcieCounts::each(sum.events, [&more](const char* name, std::uint64_t& value) { value += more[name]; });
    for (const auto& [name, value] : intervals[i]->extra.at("raw").items()) {
      if (value.is_number() && raw.contains(name)) raw[name] = raw[name].get<double>() + value.get<double>();
    }
    sum.window_s += intervals[i]->window_s;
  }
  sum.extra = Json{{"raw", raw}, {"intervals", intervals.size()}, {"intervals_left_out", left_out}};
  return sum;
}

// If the files contain one run of an RDMA tool and files of Intel PCM, the intervals become counters of the run.
// Intervals with less than half of the largest count are taken to be before or after the run.
void attach_counters(std::vector<Imported>& all) {
  std::map<std::string, std::vector<const CounterReport*>> intervals;  // by tool
  Imported* run = nullptr;
  std::size_t runs = 0;
  for (Imported& one : all) {
    if (!one.record.counters.empty()) {
      intervals[one.tool].push_back(&one.record.counters.front());
    } else {
      run = &one;
      ++runs;
    }
  }
  const auto mops = runs == 1 ? number_at(run->record.result, "rate_mops") : std::nullopt;
  if (intervals.empty() || !mops) return;
  std::vector<CounterReport> counters;
  for (const auto& [tool, reports] : intervals) {
    std::uint64_t most = 0;
    for (const CounterReport* report : reports) most = std::max(most, events_of(*report));
    std::vector<const CounterReport*> loaded;
    for (const CounterReport* report : reports) {
      if (events_of(*report) >= most / 2) loaded.push_back(report);
    }
    counters.push_back(sum_of(loaded, reports.size() - loaded.size()));
  }
  // The tool does not print its duration: computed from operations and rate.
  Record& record = run->record;
  record.result["window_ops"] = std::max(1.0, number_at(record.result, "ops").value_or(1e6));
  record.result["window_s"] = record.result["window_ops"].get<double>() / (*mops * 1e6);
  record.counters = std::move(counters);
  std::erase_if(all, [](const Imported& one) { return one.tool.starts_with("pcm-"); });
}

// make_environment describes this host; the facts of the measured host are unknown.
Json environment_of(const Imported& imported, const ImportRequest& request, const std::string& file) {
  Json environment = make_environment(imported.fabric, request.command_line);
  for (const char* key : {"hostname", "kernel", "cpu_model", "clock"}) environment[key] = "unknown";
  environment["cores"] = nullptr;
  environment["imported"] = Json{{"file", file}, {"tool", imported.tool}};
  return environment;
}

}  // namespace

std::vector<Record> import_files(const ImportRequest& request) {
  std::vector<Imported> all;
  for (const auto& path : request.files) {
    for (Imported& imported : FileImport(path.string(), request.interval_s).read(read_text_file(path))) {
      imported.record.environment = environment_of(imported, request, path.string());
      all.push_back(std::move(imported));
    }
  }
  attach_counters(all);
  std::vector<Record> records;
  std::map<std::string, int> repetitions;
  for (Imported& imported : all) {
    Record& record = imported.record;
    Json point{
        {"benchmark", record.benchmark}, {"params", record.config}, {"seed", nullptr}, {"fabric", imported.fabric}};
    point["repetition"] = repetitions[point_key(point)]++;
    record.config["point"] = std::move(point);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace verbscope
