#include "harness/what_if/point_again.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "analysis/points.hpp"
#include "analysis/round_trip.hpp"

namespace verbscope {
namespace {

// Options that bear on the run, not on the point: a limit that makes a run fail, what counts, how peers meet.
constexpr std::array<std::string_view, 12> kOfTheRun = {
    "ib_dev",  "gid_index", "cores",         "counter_sources", "require_counters", "limit_bw",
    "timeout", "any_build", "limit_msgrate", "report_gbits",    "CPU_freq",         "noPeak"};
// The times of a run on hardware, of which a simulated one needs a thousandth.
constexpr std::array<std::string_view, 4> kTimes = {"duration", "warmup", "longest", "iters"};

// Programs choose other options by whether these were given: they are given even where they have their default.
constexpr std::array<std::string_view, 4> kAlways = {"connection", "qp", "inline_size", "tx_depth"};

// What a record says beyond these no program takes: it refuses the run.
constexpr double kMostSeed = 9007199254740992, kMostOutstanding = 1 << 30;

bool among(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Whether the command line set the option, by its long name or the short one.
bool was_given(const Record& record, const std::string& name, const std::string& short_name) {
  const Json words = record.environment.value("command_line", Json::array());
  return std::ranges::any_of(words, [&](const Json& word) {
    if (!word.is_string()) return false;
    const auto text = word.get<std::string>();
    if (text.starts_with("--")) return option_name(text.substr(2, text.find('=') - 2)) == name;
    return text.starts_with(short_name);
  });
}

bool others_say_how_many_qps(const Record& record) {
  return number_at(record.config, "connections") || number_at(record.config, "vms");
}

// The value of the option in the record's configuration; null where it has none, or one that is no value to give.
Json value_in_force(const Record& record, const OptionSpec& option) {
  const bool time = option.type == OptionType::duration;
  const Json value = record.config.value(option.name + (time ? "_s" : ""), Json());
  if (value.is_null() || value == Json("") || value == Json(false)) return nullptr;
  if (value == option.default_value && !among(kAlways, option.name)) return nullptr;
  try {
    return checked_value(option, value, "config");
  } catch (const Error&) {  // 0 of what is at least 1: there is none
    return nullptr;
  }
}

}  // namespace

Point point_again(const Record& record, const BenchmarkSpec& spec) {
  const bool simulated = record.environment.value("simulated", false);
  Point point{
      .benchmark = record.benchmark,
      .seed = static_cast<std::uint64_t>(std::clamp(number_at(record.config, "seed").value_or(1), 0.0, kMostSeed))};
  for (const OptionSpec& option : spec.options) {
    if (is_reserved_option(option.name) || among(kOfTheRun, option.name)) continue;
    if (!simulated && among(kTimes, option.name)) continue;
    if (option.name == "cq_mod" && !was_given(record, option.name, "-Q")) continue;
    if (option.name == "qp" && others_say_how_many_qps(record)) continue;
    const Json value = value_in_force(record, option);
    if (!value.is_null()) point.params[option.name] = value;
  }
  if (point.params.contains("header_only")) point.params.erase("size");
  return point;
}

Point with_options(Point point, const Json& changes) {
  for (const auto& [key, value] : changes.items()) {
    const bool whole = value.is_number_float() && std::floor(value.get<double>()) == value.get<double>();
    point.params[key] = whole ? Json(value.get<std::int64_t>()) : value;
  }
  if (point.params.value("header_only", false)) point.params.erase("size");
  return point;
}

Json twice_outstanding(const Record& record) {
  if (keeps_one_under_way(record)) return nullptr;
  const std::string key = outstanding_option(record);
  const std::optional<double> now = number_at(record.config, key);
  if (!now) return nullptr;
  const auto twice = static_cast<std::int64_t>(std::clamp(2 * *now, 1.0, kMostOutstanding));
  Json options{{key, twice}};
  if (key == "window" && number_at(record.config, "tx_depth").value_or(0) < static_cast<double>(twice))
    options["tx_depth"] = twice;
  return options;
}

}  // namespace verbscope
