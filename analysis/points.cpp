#include "analysis/points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "common/hash.hpp"
#include "common/record.hpp"

namespace verbscope {
namespace {

// Options for where a record runs, not for what it runs. They never form a column.
constexpr std::array kPlacementKeys = {"point",     "fabric", "seed",    "port",      "ib_dev",       "ib_port",
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

// The last `parts` parts of a path, without its extension.
std::string end_of_path(const std::filesystem::path& path, std::size_t parts) {
  std::filesystem::path out = path.stem(), folder = path.parent_path();
  for (std::size_t i = 1; i < parts && folder.has_filename(); ++i, folder = folder.parent_path()) {
    out = folder.filename() / out;
  }
  return out.string();
}

std::pair<std::string, std::string> fabric_and_checksum(const Record& record) {
  return {text_at(record.environment, "fabric"), text_at(record.environment, "cluster_profile")};
}

}  // namespace

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

const Json& sweep_options(const Record& record) {
  const Json* point = sweep_point(record);
  if (point == nullptr) return record.config;
  const auto params = point->find("params");
  return params != point->end() && params->is_object() ? *params : record.config;
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

std::string text_at(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string harness_text(const Record& record, const std::string& key) {
  const auto harness = record.environment.find("harness");
  return harness != record.environment.end() && harness->is_object() ? text_at(*harness, key) : "";
}

bool is_point_option(const std::string& option) {
  return std::ranges::find(kPlacementKeys, option) == kPlacementKeys.end();
}

std::optional<std::vector<std::string>> changed_options(const Record& record) {
  const auto changed = record.environment.find("options_set");
  if (changed == record.environment.end() || !changed->is_array()) return std::nullopt;
  std::vector<std::string> keys;
  for (const Json& key : *changed) {
    if (key.is_string() && is_point_option(key.get<std::string>())) keys.push_back(key.get<std::string>());
  }
  return keys;
}

std::vector<std::string> option_keys(const Record& record) {
  if (sweep_point(record) == nullptr) {
    if (auto changed = changed_options(record)) return *std::move(changed);
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : sweep_options(record).items()) {
    if (is_point_option(key)) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> option_keys(const std::vector<const Record*>& records) {
  std::vector<std::string> keys;
  for (const Record* record : records) {
    for (std::string& key : option_keys(*record)) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    }
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

std::optional<double> number_at(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

const Json* value_at(const Json& object, std::string_view path) {
  const Json* at = &object;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const auto found = at->is_object() ? at->find(path.substr(begin, end - begin)) : at->end();
    if (found == at->end()) return nullptr;
    at = &*found;
    begin = end + 1;
  }
  return at;
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

std::string short_fabric(const std::string& fabric) {
  if (!is_simulated(fabric)) return fabric;
  std::string name = fabric.substr(fabric.find_last_of("/:") + 1);
  if (name.ends_with(".json")) name.erase(name.size() - 5);
  return name;
}

std::string fabric_name(const Record& record) {
  const std::string fabric = text_at(record.environment, "fabric");
  return is_simulated(fabric) ? std::string(kSimulatedPrefix) + short_fabric(fabric) : fabric;
}

std::vector<std::string> distinct_ends(const std::vector<std::string>& paths) {
  std::vector<std::string> before;
  for (std::size_t parts = 1;; ++parts) {
    std::vector<std::string> ends;
    for (const std::string& path : paths) ends.push_back(end_of_path(path, parts));
    if (std::set<std::string>(ends.begin(), ends.end()).size() == ends.size()) return ends;
    if (ends == before) return paths;  // they differ only in their extensions
    before = std::move(ends);
  }
}

FabricNames::FabricNames(const std::vector<const Record*>& records) {
  std::map<std::string, std::set<std::string>> fabrics;    // by short name
  std::map<std::string, std::set<std::string>> checksums;  // by fabric
  for (const Record* record : records) {
    const auto [fabric, checksum] = fabric_and_checksum(*record);
    names_[{fabric, checksum}];
    fabrics[short_fabric(fabric)].insert(fabric);
    checksums[fabric].insert(checksum);
  }
  for (const auto& [name, same] : fabrics) {
    std::vector<std::string> paths;
    for (const std::string& fabric : same)
      paths.push_back(fabric.substr(same.size() > 1 ? kSimulatedPrefix.size() : 0));
    const std::vector<std::string> ends = same.size() > 1 ? distinct_ends(paths) : std::vector{name};
    std::size_t i = 0;
    for (const std::string& fabric : same) {
      const std::string& end = ends[i++];
      for (const std::string& checksum : checksums[fabric]) {
        constexpr std::size_t kDigits = 8;
        const bool changed = checksums[fabric].size() > 1 && !checksum.empty();
        names_[{fabric, checksum}] = changed ? end + "@" + checksum.substr(0, kDigits) : end;
      }
    }
  }
}

const std::string& FabricNames::name_of(const Record& record) const {
  return names_.at(fabric_and_checksum(record));
}

}  // namespace verbscope
