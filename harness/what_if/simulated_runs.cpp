#include "harness/what_if/simulated_runs.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "analysis/points.hpp"
#include "common/hash.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/sweep/parallel.hpp"

namespace verbscope {
namespace {

// The value of "section.key" in the profile; null if it is no number.
const Json* number_in_profile(const Json& profile, std::string_view name) {
  const Json* const parameter = find_parameter(profile, name);
  const Json* const value = parameter == nullptr ? nullptr : value_at(*parameter, "value");
  return value != nullptr && value->is_number() ? value : nullptr;
}

Json* value_in(Json& profile, std::string_view name) {
  return const_cast<Json*>(number_in_profile(profile, name));
}

void halve(Json& value) {
  value = value.get<double>() / 2;
}

void double_value(Json& value) {
  if (value.is_number_integer()) {
    value = value.get<std::int64_t>() * 2;
  } else {
    value = value.get<double>() * 2;
  }
}

// A larger file is removed: most of its outcomes are of older programs and profiles.
constexpr std::uintmax_t kMaxBytes = 64'000'000;

TrialOutcome outcome_of(const Record& record) {
  if (record.status == RecordStatus::failed) return {.failure = record.reason};
  const std::optional<double> rate = number_at(record.result, "rate_mops");
  if (!rate || !(*rate > 0)) return {.failure = "its record has no rate"};
  return {.mops = *rate,
          .gbit_per_s = number_at(record.result, "bandwidth_gbit_per_s").value_or(0),
          .latency_us = number_at(record.result, "lat_p50_ns").value_or(0) / 1e3};
}

}  // namespace

const Json* find_parameter(const Json& profile, std::string_view name) {
  return value_at(profile, name);
}

bool can_double(const Json& profile, Resource resource) {
  const auto counts = [&profile](std::string_view name) {
    const Json* value = number_in_profile(profile, name);
    return value != nullptr && value->get<double>() > 0;
  };
  const ResourceFacts& of = facts(resource);
  return std::ranges::any_of(of.halved, counts) || std::ranges::any_of(of.doubled, counts);
}

Json double_resources(Json profile, const std::vector<Resource>& resources) {
  std::set<std::string_view> halved, doubled;
  for (const Resource resource : resources) {
    const ResourceFacts& of = facts(resource);
    halved.insert(of.halved.begin(), of.halved.end());
    doubled.insert(of.doubled.begin(), of.doubled.end());
  }
  for (const std::string_view name : halved) {
    if (Json* value = value_in(profile, name)) halve(*value);
  }
  for (const std::string_view name : doubled) {
    if (Json* value = value_in(profile, name)) double_value(*value);
  }
  return profile;
}

Json double_speed(Json profile) {
  for (const char* section : {"host", "link", "nic", "fabric"}) {
    if (!profile.contains(section)) continue;
    for (auto& [key, parameter] : profile[section].items()) {
      if (!key.ends_with("_ns")) continue;
      if (Json* value = value_in(profile, std::string(section) + "." + key)) halve(*value);
    }
  }
  for (const char* name : {"wire.pcie_lanes", "wire.port_gbit_per_s"}) {
    if (Json* value = value_in(profile, name)) double_value(*value);
  }
  return profile;
}

std::vector<std::string> assumed_parameters(const Json& profile, const std::vector<Resource>& resources) {
  std::set<std::string> out;
  for (const Resource resource : resources) {
    std::vector<std::string> names;
    bool all = true;
    for (const auto* parameters : {&facts(resource).halved, &facts(resource).doubled}) {
      for (const std::string_view name : *parameters) {
        const Json* const parameter = find_parameter(profile, name);
        if (parameter == nullptr) continue;
        all = all && parameter->value("source", "") == "assumed";
        names.emplace_back(name);
      }
    }
    if (all) out.insert(names.begin(), names.end());
  }
  return {out.begin(), out.end()};
}

RunCache::RunCache(std::filesystem::path file) : file_(std::move(file)) {
  std::error_code error;
  if (file_.empty()) return;
  if (const auto size = std::filesystem::file_size(file_, error); !error && size > kMaxBytes) {
    std::filesystem::remove(file_, error);
  }
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto mops = number_at(json, "mops");
    const std::string key = text_at(json, "key");
    if (!mops || key.empty()) continue;
    outcomes_[key] = {.mops = *mops,
                      .gbit_per_s = number_at(json, "gbit_per_s").value_or(0),
                      .latency_us = number_at(json, "latency_us").value_or(0),
                      .failure = text_at(json, "failure")};
  }
}

std::optional<TrialOutcome> RunCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = outcomes_.find(key);
  return found == outcomes_.end() ? std::nullopt : std::optional(found->second);
}

void RunCache::add(const std::string& key, const TrialOutcome& outcome) {
  const Json line{{"key", key},
                  {"mops", outcome.mops},
                  {"gbit_per_s", outcome.gbit_per_s},
                  {"latency_us", outcome.latency_us},
                  {"failure", outcome.failure}};
  const std::lock_guard lock(mutex_);
  outcomes_[key] = outcome;
  if (file_.empty()) return;
  std::ofstream out(file_, std::ios::app);
  out << dump_json(line) + "\n";
}

std::filesystem::path run_cache_of(const std::filesystem::path& results) {
  std::filesystem::path out = results;
  out += ".explain";
  return out;
}

SimulatedRuns::SimulatedRuns(Json profile, RunSetup setup, RunCache& cache)
    : profile_(std::move(profile)), setup_(std::move(setup)), cache_(cache) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(setup_.binary, error).time_since_epoch().count();
  program_ = fmt::format("{} {} {}", setup_.binary.filename().string(), written,
                         std::filesystem::file_size(setup_.binary, error));
}

Record SimulatedRuns::record(const Point& point) {
  const std::size_t number = count_++;
  return run_on(profile_, point, number);
}

std::vector<TrialOutcome> SimulatedRuns::run(const std::vector<Trial>& trials) {
  std::vector<TrialOutcome> outcomes(trials.size());
  struct Run {
    std::size_t trial;
    Json profile;
    std::string key;
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Json profile = profile_of(trials[i]);
    std::string key = key_of(profile, trials[i].point);
    if (const auto known = cache_.find(key)) {
      outcomes[i] = *known;
    } else {
      runs.push_back({i, std::move(profile), std::move(key)});
    }
  }
  if (setup_.spec.serves) served_.prepare(setup_.binary, std::min(setup_.jobs, runs.size()));
  run_parallel(runs.size(), setup_.jobs, [&](std::size_t i) {
    const auto& [trial, profile, key] = runs[i];
    outcomes[trial] = outcome(profile, trials[trial].point, count_ + trial);
    cache_.add(key, outcomes[trial]);
  });
  count_ += trials.size();
  return outcomes;
}

TrialOutcome SimulatedRuns::outcome(const Json& profile, const Point& point, std::size_t number) {
  try {
    return outcome_of(run_on(profile, point, number));
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error& error) {
    return {.failure = error.what()};
  }
}

Json SimulatedRuns::profile_of(const Trial& trial) const {
  return trial.double_speed ? double_speed(profile_) : double_resources(profile_, trial.doubled);
}

std::string SimulatedRuns::key_of(const Json& profile, const Point& point) const {
  const std::string all =
      fmt::format("{}\n{}\n{}\n{}", program_, dump_json(profile), dump_json(point.params), point.seed);
  return fmt::format("{:016x}", text_hash(all));
}

Record SimulatedRuns::run_on(const Json& profile, const Point& point, std::size_t number) {
  const std::filesystem::path file = temp_.write(fmt::format("{}.json", number), dump_json(profile) + "\n");
  const PointRunner runner(setup_.binary, setup_.spec,
                           RunTarget{.fabric = "sim:" + file.string(), .roles = {}, .programs = &served_}, RoleLimits{},
                           setup_.stop);
  std::optional<Record> record = runner.run(point);
  if (!record) throw InterruptedError("interrupted");
  return std::move(*record);
}

}  // namespace verbscope
