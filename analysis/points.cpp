#include "analysis/points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <list>
#include <tuple>
#include <utility>

#include "analysis/loads.hpp"
#include "analysis/sources.hpp"
#include "common/hash.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

// Options for where a record runs, not for what it runs. They never form a column.
constexpr std::array kSilentKeys = {"point",     "fabric", "seed",    "port",      "ib_dev",       "ib_port",
                                    "gid_index", "cores",  "timeout", "timeout_s", "out_json_file"};

const Json* sweep_point(const Record& record) {
  const auto point = record.config.find("point");
  return point != record.config.end() && point->is_object() ? &*point : nullptr;
}

Json identity(const Record& record) {
  if (const Json* point = sweep_point(record)) return *point;
  return Json{{"benchmark", record.benchmark},
              {"fabric", record.environment.at("fabric")},
              {"seed", record.config.value("seed", Json())},
              {"params", record.config}};
}

// record_key, distinct for each file.
std::string key_in_file(const Record& record) {
  return record.file + "\n" + record_key(record);
}

// Drops a prediction that cannot be read, with a warning. The record stays usable.
void drop_broken_prediction(Record& record, const std::string& path, Warnings& warnings) {
  try {
    prediction_of(record);
  } catch (const Error& error) {
    warnings.add(fmt::format("{}: {} (taken for none)", path, error.what()));
    record.prediction = Json();
  }
}

// The chosen records. A file with a million runs of a few points needs memory for a few records only.
class Loaded {
 public:
  Loaded(bool all, std::size_t most_bytes) : all_(all), most_bytes_(most_bytes) {}

  // `file`: Record::file of the records.
  void read(const std::string& path, const std::string& file) {
    std::size_t found = 0;
    Warnings warnings(path, "lines are not records"),
        broken_predictions(path, "lines have a prediction that cannot be read");
    each_result(
        path,
        [&](Record record, std::size_t bytes) {
          ++found;
          drop_broken_prediction(record, path, broken_predictions);
          record.file = file;
          take(std::move(record), bytes, path);
        },
        [&](const std::string& warning) { warnings.add(warning); });
    if (found == 0) fail("{}: has no record", path);
  }

  std::vector<Record> records() {
    std::vector<Record> out;
    for (Entry& entry : entries_) out.push_back(std::move(entry.record));
    return out;
  }

 private:
  struct Entry {
    Record record;
    std::size_t bytes;
  };

  void take(Record record, std::size_t bytes, const std::string& path) {
    bytes_ += bytes;
    std::string key = all_ ? "" : key_in_file(record);
    entries_.push_back({std::move(record), bytes});
    if (!all_) {
      const auto [place, is_new] = last_.try_emplace(std::move(key), std::prev(entries_.end()));
      if (!is_new) {
        bytes_ -= place->second->bytes;
        entries_.erase(place->second);
        place->second = std::prev(entries_.end());
      }
    }
    if (bytes_ > most_bytes_) {
      fail("{}: with it the files have more than {} MB of {}, too many to look at together: name fewer files", path,
           most_bytes_ / 1'000'000, all_ ? "records" : "points");
    }
  }

  bool all_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;
  std::map<std::string, std::list<Entry>::iterator> last_;  // by record_key
};

// Position of a record in a table: its sweep on one fabric (or the record itself if it has no sweep), in order of
// appearance; then its place in the sweep and its repetition.
using Standing = std::tuple<std::size_t, double, int>;

std::vector<const Record*> in_sweep_order(const std::vector<const Record*>& records) {
  std::map<std::string, std::size_t> sweeps;
  std::vector<std::pair<Standing, const Record*>> standings;
  for (const Record* record : records) {
    const auto harness = record->environment.find("harness");
    const bool told = harness != record->environment.end() && harness->is_object();
    const auto place = told ? number_at(*harness, "place") : std::nullopt;
    const std::size_t next = standings.size();
    const std::string run = place ? fmt::format("{}\n{}\n{}", record->file, text_at(*harness, "sweep"),
                                                text_at(record->environment, "fabric"))
                                  : "";
    const std::size_t sweep = place ? sweeps.try_emplace(run, next).first->second : next;
    standings.emplace_back(Standing{sweep, place.value_or(0), place ? repetition_of(*record) : 0}, record);
  }
  std::ranges::stable_sort(standings, {}, &std::pair<Standing, const Record*>::first);
  std::vector<const Record*> out;
  for (const auto& [standing, record] : standings) out.push_back(record);
  return out;
}

}  // namespace

std::vector<Record> load_results(const std::vector<std::string>& paths, bool all, std::size_t most_bytes) {
  const std::vector<std::string> names = file_names(paths);
  Loaded loaded(all, most_bytes);
  for (std::size_t i = 0; i < paths.size(); ++i) loaded.read(paths[i], names[i]);
  return loaded.records();
}

std::string record_key(const Record& record) {
  return point_key(identity(record));
}

std::string repeated_key(const Record& record) {
  Json point = identity(record);
  const auto drop = [](Json& from, std::initializer_list<const char*> keys) {
    for (const char* key : keys) from.erase(key);
  };
  drop(point, {"repetition", "seed", "fabric"});
  const auto params = point.find("params");
  if (params != point.end() && params->is_object()) drop(*params, {"seed", "fabric", "out_json_file"});
  return point_key(point);
}

std::string point_id(const Record& record) {
  const std::uint64_t hash = text_hash(fabric_name(record) + " " + repeated_key(record));
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash ^ hash >> 32));
}

const Json& set_options(const Record& record) {
  const Json* point = sweep_point(record);
  if (point == nullptr) return record.config;
  const auto params = point->find("params");
  return params != point->end() && params->is_object() ? *params : record.config;
}

std::string text_at(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string harness_text(const Record& record, const std::string& key) {
  const auto harness = record.environment.find("harness");
  return harness != record.environment.end() && harness->is_object() ? text_at(*harness, key) : "";
}

bool says_what_runs(const std::string& option) {
  return std::ranges::find(kSilentKeys, option) == kSilentKeys.end();
}

std::optional<std::vector<std::string>> changed_options(const Record& record) {
  const auto changed = record.environment.find("options_set");
  if (changed == record.environment.end() || !changed->is_array()) return std::nullopt;
  std::vector<std::string> keys;
  for (const Json& key : *changed) {
    if (key.is_string() && says_what_runs(key.get<std::string>())) keys.push_back(key.get<std::string>());
  }
  return keys;
}

std::vector<std::string> option_keys(const Record& record) {
  if (sweep_point(record) == nullptr) {
    if (auto changed = changed_options(record)) return *std::move(changed);
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : set_options(record).items()) {
    if (says_what_runs(key)) keys.push_back(key);
  }
  return keys;
}

std::string option_text(const Record& record, const std::string& key) {
  for (const std::string& name : {key, key + "_s"}) {
    const auto value = record.config.find(name);
    if (value == record.config.end() || value->is_null()) continue;
    if (value->is_boolean()) return value->get<bool>() ? "yes" : "no";
    if (value->is_string()) return value->get<std::string>();
    const std::string text = value->is_number_float() ? fmt::format("{:g}", value->get<double>()) : dump_json(*value);
    return name == key ? text : text + " s";
  }
  return "-";
}

std::string point_title(const Record& record) {
  std::string title = record.benchmark;
  for (const std::string& key : option_keys(record)) title += fmt::format(" {}={}", key, option_text(record, key));
  return title;
}

int repetition_of(const Record& record) {
  const Json* point = sweep_point(record);
  return point == nullptr ? 0 : static_cast<int>(std::clamp(number_at(*point, "repetition").value_or(0), 0.0, 1e6));
}

std::vector<const Record*> last_of_each_point(const std::vector<Record>& records) {
  std::map<std::string, std::size_t> last;
  std::vector<std::string> keys;
  for (const Record& record : records) {
    keys.push_back(key_in_file(record));
    last[keys.back()] = keys.size() - 1;
  }
  std::vector<const Record*> out;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (last.at(keys[i]) == i) out.push_back(&records[i]);
  }
  return in_sweep_order(out);
}

std::vector<const Record*> chosen_records(const std::vector<Record>& records, bool all) {
  if (!all) return last_of_each_point(records);
  std::vector<const Record*> out;
  for (const Record& record : records) out.push_back(&record);
  return out;
}

std::optional<double> number_at(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

const CounterReport* counters_of(const Record& record, const std::string& node) {
  const CounterReport* found = nullptr;
  for (const CounterReport& report : record.counters) {
    if (report.node == node && (found == nullptr || report.source == "sim")) found = &report;
  }
  return found;
}

std::optional<PciePerOp> events_per_op(const Record& record) {
  std::map<std::string, double> seen;
  for (const CounterReport& report : record.counters) {
    const double ops = operations_in_window(record.result, report);
    if (report.node != "server" || !(ops > 0)) continue;
    PcieCounts::each(report.events, [&](const char* name, std::uint64_t value) {
      if (report.sees(name)) seen.emplace(name, static_cast<double>(value) / ops);
    });
  }
  if (seen.empty()) return std::nullopt;
  PciePerOp events;
  PciePerOp::each(events, [&](const char* name, double& value) {
    const auto found = seen.find(name);
    value = found == seen.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  });
  return events;
}

std::optional<double> extra_per_op(const Record& record, const std::string& key) {
  const CounterReport* report = counters_of(record, "server");
  if (report == nullptr) return std::nullopt;
  const std::optional<double> count = number_at(report->extra, key);
  const double ops = operations_in_window(record.result, *report);
  return count && ops > 0 ? std::optional(*count / ops) : std::nullopt;
}

double counted_in_all(const Record& record, const std::string& key) {
  double sum = 0;
  for (const CounterReport& report : record.counters) sum += number_at(report.extra, key).value_or(0);
  return sum;
}

}  // namespace verbscope
