#include "harness/what_if/point_again.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "harness/cluster/shell_quote.hpp"
#include "wire/verb.hpp"

namespace verbscope {
namespace {

// Options of the run, not of the point: limits that make it fail, counter sources, and how peers connect.
constexpr std::array<std::string_view, 13> kOfTheRun = {
    "all",      "ib_dev",  "gid_index", "cores",         "counter_sources", "require_counters",
    "limit_bw", "timeout", "any_build", "limit_msgrate", "report_gbits",    "CPU_freq",
    "noPeak"};
// Durations of a run on hardware; a simulated run needs a thousandth.
constexpr std::array<std::string_view, 4> kTimes = {"duration", "warmup", "longest", "iters"};

// Programs choose other options depending on whether these are given, so they are given even with their default value.
constexpr std::array<std::string_view, 4> kAlways = {"connection", "qp", "inline_size", "tx_depth"};

// Larger values in a record are invalid: programs refuse them.
constexpr double kMostSeed = 9007199254740992, kMostOutstanding = 1 << 30;

bool among(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Json command_line(const Record& record) {
  const Json words = record.environment.value("command_line", Json());
  return words.is_array() ? words : Json::array();
}

// True if the command line set the option, by its long name or its letter.
bool was_given(const Record& record, const OptionSpec& option) {
  return std::ranges::any_of(command_line(record), [&](const Json& word) {
    if (!word.is_string()) return false;
    const auto text = word.get<std::string>();
    if (text.starts_with("--")) return option_name(text.substr(2, text.find('=') - 2)) == option.name;
    return !option.letter.empty() && text.starts_with("-" + option.letter);
  });
}

bool others_say_how_many_qps(const Record& record) {
  return number_at(record.config, "connections") || number_at(record.config, "vms");
}

// The option's value in the record's configuration; null if there is none that can be passed to the program.
Json value_in_force(const Record& record, const OptionSpec& option) {
  const bool time = option.type == OptionType::duration;
  const Json value = record.config.value(option.name + (time ? "_s" : ""), Json());
  if (value.is_null() || value == Json("") || value == Json(false)) return nullptr;
  try {
    return checked_value(option, value, "config");
  } catch (const Error&) {  // 0 for an option of at least 1 means none
    return nullptr;
  }
}

}  // namespace

namespace {

template <class Takes>
Point point_of(const Record& record, const BenchmarkSpec& spec, const Takes& takes) {
  const bool simulated = record.environment.value("simulated", false);
  Point point{
      .benchmark = record.benchmark,
      .seed = static_cast<std::uint64_t>(std::clamp(number_at(record.config, "seed").value_or(1), 0.0, kMostSeed))};
  for (const OptionSpec& option : spec.options) {
    if (is_reserved_option(option.name) || among(kOfTheRun, option.name)) continue;
    if (!simulated && among(kTimes, option.name)) continue;
    if (option.name == "qp" && others_say_how_many_qps(record)) continue;
    const Json value = value_in_force(record, option);
    if (!value.is_null() && takes(option, value)) point.params[option.name] = value;
  }
  if (point.params.contains("header_only")) point.params.erase("size");
  return point;
}

}  // namespace

Point point_again(const Record& record, const BenchmarkSpec& spec) {
  return point_of(record, spec, [&](const OptionSpec& option, const Json& value) {
    if (option.name == "cq_mod") return was_given(record, option);
    return value != option.default_value || among(kAlways, option.name);
  });
}

Point point_as_given(const Record& record, const BenchmarkSpec& spec) {
  if (command_line(record).empty()) return point_again(record, spec);
  // A record of an --all run contains one of its sizes.
  const bool all = record.config.value("all", false);
  return point_of(record, spec, [&](const OptionSpec& option, const Json&) {
    return was_given(record, option) || (all && option.name == "size");
  });
}

Point with_options(Point point, const Json& changes) {
  for (const auto& [key, value] : changes.items()) {
    if (value.is_null()) {
      point.params.erase(key);
      continue;
    }
    const bool whole = value.is_number_float() && std::floor(value.get<double>()) == value.get<double>();
    point.params[key] = whole ? Json(value.get<std::int64_t>()) : value;
  }
  if (point.params.value("header_only", false)) point.params.erase("size");
  return point;
}

std::string command_text(const Point& point, const std::string& fabric) {
  std::vector<std::string> words{point.benchmark, "--fabric", fabric};
  for (const auto& [key, value] : point.params.items()) {
    if (value == Json(false)) continue;
    words.push_back("--" + key);
    if (value != Json(true)) words.push_back(value.is_string() ? value.get<std::string>() : dump_json(value));
  }
  if (point.seed != 1) words.insert(words.end(), {"--seed", fmt::format("{}", point.seed)});
  return shell_quote(words);
}

Json twice_by_options(const Record& record, Resource resource) {
  const auto twice_of = [&record](const char* key) -> Json {
    const std::optional<double> now = number_at(record.config, key);
    if (!now || *now < 1) return nullptr;
    return Json{{key, static_cast<std::int64_t>(std::clamp(2 * *now, 1.0, kMostOutstanding))}};
  };
  if (resource == Resource::reads_outstanding && number_at(record.config, "outs").value_or(0) * 2 <= kMostReads)
    return twice_of("outs");
  if (resource == Resource::recv_queue) return twice_of("rx_depth");
  if (resource != Resource::outstanding || keeps_one_outstanding(record)) return nullptr;
  const std::string key = outstanding_option(record);
  Json options = twice_of(key.c_str());
  if (!options.is_null() && key == "window" &&
      number_at(record.config, "tx_depth").value_or(0) < number_at(options, key).value_or(0))
    options["tx_depth"] = options[key];
  return options;
}

}  // namespace verbscope
