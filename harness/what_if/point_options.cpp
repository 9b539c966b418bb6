#include "harness/what_if/point_options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "harness/cluster/shell_quote.hpp"
#include "harness/what_if/simulated_runs.hpp"
#include "wire/verb.hpp"

namespace verbscope {
namespace {

// Options of the run, not of the point: limits that make it fail, counter sources, and how peers connect.
constexpr std::array<std::string_view, 13> kRunOptions = {
    "all",      "ib_dev",  "gid_index", "cores",         "counter_sources", "require_counters",
    "limit_bw", "timeout", "any_build", "limit_msgrate", "report_gbits",    "CPU_freq",
    "noPeak"};
// Durations of a run on hardware; a simulated run needs a thousandth.
constexpr std::array<std::string_view, 4> kDurations = {"duration", "warmup", "longest", "iters"};

// Programs choose other options depending on whether these are given, so they are given even with their default value.
constexpr std::array<std::string_view, 4> kAlwaysGiven = {"connection", "qp", "inline_size", "tx_depth"};

// Larger values in a record are invalid: programs refuse them.
constexpr double kMaxSeed = 9007199254740992, kMaxOutstanding = 1 << 30;

bool contains(const auto& names, std::string_view name) {
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

bool qps_follow_from_other_options(const Record& record) {
  return number_at(record.config, "connections") || number_at(record.config, "vms");
}

// The option's value in the record's configuration; null if there is none that can be passed to the program.
Json effective_value(const Record& record, const OptionSpec& option) {
  const bool time = option.type == OptionType::duration;
  const Json value = record.config.value(option.name + (time ? "_s" : ""), Json());
  if (value.is_null() || value == Json("") || value == Json(false)) return nullptr;
  try {
    return checked_value(option, value, "config");
  } catch (const Error&) {  // 0 for an option of at least 1 means none
    return nullptr;
  }
}

template <class Takes>
Point point_of(const Record& record, const BenchmarkSpec& spec, const Takes& takes) {
  const bool simulated = record.environment.value("simulated", false);
  Point point{
      .benchmark = record.benchmark,
      .seed = static_cast<std::uint64_t>(std::clamp(number_at(record.config, "seed").value_or(1), 0.0, kMaxSeed))};
  for (const OptionSpec& option : spec.options) {
    if (is_reserved_option(option.name) || contains(kRunOptions, option.name)) continue;
    if (!simulated && contains(kDurations, option.name)) continue;
    if (option.name == "qp" && qps_follow_from_other_options(record)) continue;
    const Json value = effective_value(record, option);
    if (!value.is_null() && takes(option, value)) point.params[option.name] = value;
  }
  if (point.params.contains("header_only")) point.params.erase("size");
  return point;
}

// Larger values are not used in practice and take long to simulate.
constexpr double kMaxList = 512, kMaxDepth = 8192;
// The path MTU matters only to operations of more than one packet.
constexpr double kMinMtu = 256;

double in_profile(const Json& profile, std::string_view name, double fallback) {
  const Json* const parameter = find_parameter(profile, name);
  return parameter == nullptr ? fallback : number_at(*parameter, "value").value_or(fallback);
}

class ChoiceList {
 public:
  ChoiceList(const Record& record, const BenchmarkSpec& spec, const Json& profile)
      : record_(record), spec_(spec), profile_(profile) {}

  std::vector<OptionChoices> all() {
    posting();
    queues();
    machines();
    memory();
    return std::move(out_);
  }

 private:
  std::optional<double> now(const char* name) const { return number_at(record_.config, name); }
  bool is_on(const char* name) const { return record_.config.value(name, Json()) == Json(true); }

  void number(const char* name, double low, double high) {
    const OptionSpec* option = spec_.find(name);
    std::optional<double> value = now(name);
    // Window 0 means the depth of the queue.
    if (std::string_view(name) == "window" && value == 0.0) value = now("tx_depth");
    if (option == nullptr || !value || *value < 1) return;
    low = std::max(low, static_cast<double>(option->min));
    high = std::min(high, static_cast<double>(option->max));
    out_.push_back({.option = name, .now = *value, .number = true, .low = low, .high = std::max(high, *value)});
  }

  void values(const char* name, const Json& now, std::vector<Json> others) {
    if (spec_.find(name) == nullptr) return;
    std::erase(others, now);
    if (!others.empty()) out_.push_back({.option = name, .now = now, .values = std::move(others)});
  }

  // Tries every other word of the option.
  void words(const char* name) {
    const OptionSpec* option = spec_.find(name);
    if (option == nullptr || !option->allowed.is_array()) return;
    values(name, record_.config.value(name, Json()), option->allowed.get<std::vector<Json>>());
  }

  // Tries the flag on if it is off, and without it if it is on.
  void flag(const char* name) {
    values(name, is_on(name) ? Json(true) : Json(nullptr), {is_on(name) ? Json(nullptr) : Json(true)});
  }

  std::string registers() const {
    const std::string given = text_at(record_.config, "uars");
    return given.empty() ? "default" : given;
  }

  void posting() {
    const double size = now("size").value_or(0), most = in_profile(profile_, "wire.max_inline_bytes", 0);
    number("post_list", 1, kMaxList);
    number("cq_mod", 1, kMaxDepth);
    number("recv_list", 1, kMaxList);
    std::vector<Json> sizes{0};
    if (size > 0 && size <= most) sizes.emplace_back(static_cast<std::int64_t>(size));
    if (most > 0) sizes.emplace_back(static_cast<std::int64_t>(most));
    const Json inlined = static_cast<std::int64_t>(now("inline_size").value_or(0));
    const bool inlines = record_.config.value("inlined", false);
    if (inlines) std::erase_if(sizes, [](const Json& each) { return each != Json(0); });
    values("inline_size", inlined, std::move(sizes));
    if (size > 0 && size <= kImmediateBytes && !is_on("header_only")) flag("header_only");
    if (size > 0)
      values("inline_recv", static_cast<std::int64_t>(now("inline_recv").value_or(0)),
             {0, static_cast<std::int64_t>(size)});
    words("connection");
    words("locks");
    flag("batching");
    number("max_batch", 1, kMaxList);
    for (const char* name : {"requests", "prefetch", "wait", "seen_by"}) words(name);
    if (is_on("events")) flag("events");
    flag("wr_api");
  }

  void queues() {
    number("window", 1, kMaxDepth);
    number("outstanding", 1, kMaxDepth);
    number("tx_depth", 1, kMaxDepth);
    if (counted_in_all(record_, "messages_received") > 0) number("rx_depth", 1, kMaxDepth);
    if (text_at(record_.config, "connection") == "RC" &&
        counted_in_all(record_, "reads_served") + counted_in_all(record_, "atomics_served") > 0)
      number("outs", 1, 255);
    flag("cq_per_qp");
    flag("srq");
  }

  void machines() {
    values("uars", registers(), {"default", "exclusive"});
    // One outstanding operation at a time does not become faster with more threads or QPs.
    if (keeps_one_outstanding(record_)) return;
    const double cores = in_profile(profile_, "host.cores", 1);
    for (const char* name : {"threads", "client_threads", "threads_per_qp"}) number(name, 1, cores);
    for (const char* name : {"qp", "connections", "vms", "clients", "answer_qps"}) number(name, 1, 4096);
  }

  void memory() {
    words("pages");
    if (record_.config.contains("flow_control")) {
      words("flow_control");
      words("congestion_control");
    }
    const double size = now("size").value_or(0);
    if (const auto mtu = now("mtu"); mtu && size > kMinMtu)
      values("mtu", static_cast<std::int64_t>(*mtu), {1024, 2048, 4096});
  }

  const Record& record_;
  const BenchmarkSpec& spec_;
  const Json& profile_;
  std::vector<OptionChoices> out_;
};

}  // namespace

Point effective_point(const Record& record, const BenchmarkSpec& spec) {
  return point_of(record, spec, [&](const OptionSpec& option, const Json& value) {
    if (option.name == "cq_mod") return was_given(record, option);
    return value != option.default_value || contains(kAlwaysGiven, option.name);
  });
}

Point point_as_given(const Record& record, const BenchmarkSpec& spec) {
  if (command_line(record).empty()) return effective_point(record, spec);
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

namespace {

// Twice the credits. If RECVs for them are missing, only twice the receive queue makes room for them.
Json doubled_credits(const Record& record, Resource resource) {
  const double credits = number_at(record.config, "credits").value_or(0);
  const double recvs = number_at(record.config, "rx_depth").value_or(0);
  if (credits < 1 || recvs_bound_credits(record) != (resource == Resource::recv_queue)) return nullptr;
  Json options{{"credits", 2 * credits}};
  const auto result = [&record](const char* key) { return number_at(record.result, key).value_or(0); };
  if (2 * credits * result("sessions") > result("recvs")) options["rx_depth"] = 2 * recvs;
  return options;
}

// ordered_kv counts the workers among its threads.
Json doubled_workers(const Record& record) {
  const double workers = number_at(record.config, "workers").value_or(0);
  if (workers < 1) return nullptr;
  Json options{{"workers", 2 * workers}};
  if (record.benchmark == "ordered_kv") {
    options["threads"] = number_at(record.config, "threads").value_or(0) + workers;
  }
  return options;
}

Json halved_timeout(const Record& record) {
  const double rto = number_at(record.config, "rto_s").value_or(0);
  if (rto <= 0 || number_at(record.result, "timeouts").value_or(0) == 0) return nullptr;
  return Json{{"rto", fmt::format("{:g}us", rto / 2 * 1e6)}};
}

}  // namespace

Json doubling_options(const Record& record, Resource resource) {
  const auto double_value = [&record](const char* key) -> Json {
    const std::optional<double> now = number_at(record.config, key);
    if (!now || *now < 1) return nullptr;
    return Json{{key, static_cast<std::int64_t>(std::clamp(2 * *now, 1.0, kMaxOutstanding))}};
  };
  if (resource == Resource::reads_outstanding && number_at(record.config, "outs").value_or(0) * 2 <= kMaxReads)
    return double_value("outs");
  if (is_rpc(record) && (resource == Resource::credits || resource == Resource::recv_queue)) {
    return doubled_credits(record, resource);
  }
  if (resource == Resource::recv_queue) return double_value("rx_depth");
  if (resource == Resource::workers) return doubled_workers(record);
  if (resource == Resource::timeouts) return halved_timeout(record);
  if (resource == Resource::rate_limiter && text_at(record.config, "cc") != "none" && is_rpc(record)) {
    return Json{{"cc", "none"}};
  }
  if (resource != Resource::outstanding || keeps_one_outstanding(record)) return nullptr;
  const std::string key = outstanding_option(record);
  Json options = double_value(key.c_str());
  if (!options.is_null() && key == "window" &&
      number_at(record.config, "tx_depth").value_or(0) < number_at(options, key).value_or(0))
    options["tx_depth"] = options[key];
  return options;
}

std::vector<OptionChoices> option_choices(const Record& record, const BenchmarkSpec& spec, const Json& profile,
                                          const std::vector<Limit>& limits) {
  std::vector<OptionChoices> out = ChoiceList(record, spec, profile).all();
  const auto relieves = [&limits](const OptionChoices& choices) {
    return std::ranges::any_of(limits, [&](const Limit& limit) {
      const auto& options = facts(limit.load.resource).options;
      return std::ranges::find(options, choices.option) != options.end();
    });
  };
  std::stable_partition(out.begin(), out.end(), relieves);
  return out;
}

std::string change_text(const OptionChoices& choices, const Json& value) {
  if (value.is_null()) return "without --" + choices.option;
  if (value == Json(true)) return "--" + choices.option;
  const auto text = [](const Json& each) { return each.is_string() ? each.get<std::string>() : dump_json(each); };
  const Json now = choices.now.is_number_float() ? Json(choices.now.get<std::int64_t>()) : choices.now;
  return fmt::format("--{} {} (now {})", choices.option, text(value), now.is_null() ? "not given" : text(now));
}

}  // namespace verbscope
