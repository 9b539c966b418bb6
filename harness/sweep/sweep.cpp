#include "harness/sweep/sweep.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "common/record.hpp"
#include "common/text.hpp"
#include "harness/sweep/formula.hpp"

namespace verbscope {
namespace {

constexpr std::array<std::string_view, 8> kReservedKeys = {"fabric", "seed", "out_json_file", "out_json",
                                                           "output", "port", "listen",        "secret"};

const std::vector<std::string> kFabricKinds = {"sim", "verbs", "null", "host"};

void check_fabric(const std::string& fabric, const std::string& where) {
  if (std::ranges::find(kFabricKinds, fabric) != kFabricKinds.end()) return;
  if (is_simulated(fabric) && is_fabric(fabric)) return;
  fail("{}: expected sim:NAME, {}, got \"{}\"", where, or_list(kFabricKinds), fabric);
}

std::vector<std::string> parse_fabrics(const Json& json, const std::string& where) {
  auto fabrics = json_value<std::vector<std::string>>(json, where);
  for (const std::string& fabric : fabrics) check_fabric(fabric, where);
  return fabrics;
}

// Parses an object of scalar option values; '-' in keys becomes '_'.
Json parse_params(const Json& json, const std::string& where) {
  if (!json.is_object()) fail("{}: expected an object of option values, got {}", where, json.type_name());
  if (json.size() > kMaxOptions) fail("{}: more than {} options", where, kMaxOptions);
  Json params = Json::object();
  for (const auto& [key, value] : json.items()) {
    const std::string name = option_name(key);
    if (params.contains(name)) fail("{}: \"{}\" is given more than once", where, name);
    if (value.is_structured() || value.is_null()) {
      fail("{}: \"{}\": expected one value, got {}", where, key, value.type_name());
    }
    params[name] = value;
  }
  return params;
}

std::vector<std::pair<std::string, Json>> parse_fixed_on(const Json& json, const std::string& where) {
  if (!json.is_object()) fail("{}: expected an object of fabrics, got {}", where, json.type_name());
  std::vector<std::pair<std::string, Json>> out;
  for (const auto& [fabric, params] : json.items()) {
    check_fabric(fabric, where);
    out.emplace_back(fabric, parse_params(params, fmt::format("{}: \"{}\"", where, fabric)));
  }
  return out;
}

std::vector<std::pair<std::string, std::vector<Json>>> parse_vary(const Json& json, const std::string& where) {
  if (!json.is_object()) fail("{}: expected an object of lists, got {}", where, json.type_name());
  if (json.size() > kMaxOptions) fail("{}: more than {} options", where, kMaxOptions);
  std::vector<std::pair<std::string, std::vector<Json>>> vary;
  for (const auto& [key, values] : json.items()) {
    const std::string name = option_name(key);
    if (std::ranges::find(vary, name, [](const auto& each) { return each.first; }) != vary.end()) {
      fail("{}: \"{}\" is given more than once", where, name);
    }
    if (!values.is_array() || values.empty()) fail("{}: \"{}\": expected a list of at least one value", where, key);
    for (const Json& value : values) {
      if (value.is_structured() || value.is_null()) {
        fail("{}: \"{}\": expected single values in the list, got {}", where, key, value.type_name());
      }
    }
    vary.emplace_back(name, std::vector<Json>(values.begin(), values.end()));
  }
  return vary;
}

std::string point_where(const Sweep& sweep, std::size_t index) {
  return fmt::format("{}: points[{}]", sweep.where, index);
}

SweepPoint parse_point(Json json, const std::string& where) {
  SweepPoint point;
  if (json.is_object() && json.contains("fabrics")) {
    point.fabrics = parse_fabrics(json.at("fabrics"), where + ": fabrics");
    json.erase("fabrics");
  }
  if (json.is_object() && json.contains("benchmark")) {
    point.benchmark = json_value<std::string>(json.at("benchmark"), where + ": benchmark");
    json.erase("benchmark");
  }
  if (json.is_object() && json.contains("label")) {
    point.label = json_value<std::string>(json.at("label"), where + ": label");
    json.erase("label");
  }
  point.overrides = parse_params(json, where);
  return point;
}

bool is_for(const SweepPoint& entry, const std::string& benchmark) {
  return entry.benchmark.empty() || entry.benchmark == benchmark;
}

// Each entry must be for a benchmark of the sweep, and each benchmark must have an entry.
void check_entries(const Sweep& sweep) {
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const std::string& name = sweep.points[i].benchmark;
    if (!name.empty() && std::ranges::find(sweep.benchmarks, name) == sweep.benchmarks.end()) {
      fail("{}: \"benchmark\": \"{}\" is not one of the sweep's benchmarks", point_where(sweep, i), name);
    }
  }
  for (const std::string& name : sweep.benchmarks) {
    const auto has_it = [&name](const SweepPoint& entry) { return is_for(entry, name); };
    if (!sweep.points.empty() && std::ranges::none_of(sweep.points, has_it)) {
      fail("{}: no entry of points is for benchmark \"{}\"", sweep.where, name);
    }
  }
}

// A key of `vary` must not appear elsewhere. (Points may override fixed.)
void check_no_overlap(const Sweep& sweep) {
  for (const auto& [key, values] : sweep.vary) {
    if (sweep.fixed.contains(key)) fail("{}: \"{}\" is in both fixed and vary", sweep.where, key);
    for (const auto& [fabric, params] : sweep.fixed_on) {
      if (params.contains(key)) fail("{}: \"{}\" is in both fixed_on and vary", sweep.where, key);
    }
    for (std::size_t i = 0; i < sweep.points.size(); ++i) {
      if (sweep.points[i].overrides.contains(key)) fail("{}: \"{}\" is also in vary", point_where(sweep, i), key);
    }
  }
}

void check_count(const Sweep& sweep) {
  std::uint64_t count = std::max<std::uint64_t>(sweep.points.size(), 1) *
                        static_cast<std::uint64_t>(sweep.repetitions) * sweep.benchmarks.size();
  for (const auto& [key, values] : sweep.vary) {
    if (count > kMaxPoints) break;
    count *= values.size();
  }
  if (count > kMaxPoints) fail("{}: points, vary and repetitions give more than {} points", sweep.where, kMaxPoints);
}

// Checks that the formula names integer options of the same benchmark.
void check_formula(const OptionSpec& option, const std::string& text, const BenchmarkSpec& spec,
                   const std::string& where) {
  const std::string what = fmt::format("{}: \"{}\"", where, option.name);
  for (const std::string& name : formula_names(text, what)) {
    if (!takes_formulas(spec.require(name, what))) fail("{}: \"{}\": {} is not a whole number", what, text, name);
  }
}

// Converts the value to the form of records. A formula is kept until the point is known.
void check_value(const std::string& key, Json& value, const BenchmarkSpec& spec, const std::string& where) {
  if (is_reserved_option(key)) fail("{}: \"{}\" is set by the harness: a sweep cannot set it", where, key);
  const OptionSpec& option = spec.require(key, where);
  if (holds_formula(option, value)) return check_formula(option, value.get<std::string>(), spec, where);
  value = checked_value(option, value, where);
  if (value != true) return;
  if (key == "all") fail("{}: \"all\" is not allowed in a sweep: vary \"size\" instead", where);
  if (key == "run_infinitely")
    fail("{}: \"run_infinitely\" is not allowed in a sweep: such a run writes no record", where);
}

void check_params(Json& params, const BenchmarkSpec& spec, const std::string& where) {
  for (auto& [key, value] : params.items()) check_value(key, value, spec, where);
}

// Repetition i has the sweep's seed plus i.
void check_seeds(const Sweep& sweep, const BenchmarkSpec& spec) {
  const auto largest = static_cast<std::uint64_t>(spec.require("seed", sweep.where).max);
  const auto further = static_cast<std::uint64_t>(sweep.repetitions - 1);
  if (sweep.seed <= largest && further <= largest - sweep.seed) return;
  fail("{}: seed {}, repetitions {}: the largest seed of {} is {}", sweep.where, sweep.seed, sweep.repetitions,
       spec.name, largest);
}

Json sorted(const Json& params) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : params.items()) keys.push_back(key);
  std::ranges::sort(keys);
  Json out = Json::object();
  for (const std::string& key : keys) out[key] = params.at(key);
  return out;
}

// Appends all combinations of the keys of vary; the last key varies fastest.
void cross_product(const Sweep& sweep, std::size_t depth, Json& params, std::vector<Json>& out) {
  if (depth == sweep.vary.size()) {
    out.push_back(sorted(params));
    return;
  }
  const auto& [key, values] = sweep.vary[depth];
  for (const Json& value : values) {
    params[key] = value;
    cross_product(sweep, depth + 1, params, out);
  }
}

void remove_key(Sweep& sweep, const std::string& key) {
  std::erase_if(sweep.vary, [&key](const auto& each) { return each.first == key; });
  for (SweepPoint& point : sweep.points) point.overrides.erase(key);
  for (auto& [fabric, params] : sweep.fixed_on) params.erase(key);
  sweep.fixed.erase(key);
}

// The options of a point as it runs on `fabric`.
Json options_of(const Sweep& sweep, const std::string& benchmark, Json params, const std::string& fabric) {
  if (fabric == "verbs") params.erase("clients");
  const auto spec = sweep.specs.find(benchmark);
  return spec == sweep.specs.end() ? params : with_formulas_computed(spec->second, std::move(params), sweep.where);
}

// The numbers below `count` in an order that is equal on all machines (Fisher and Yates).
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  return order;
}

// Parses one name, or an array of names.
std::vector<std::string> parse_benchmarks(JsonFields& fields) {
  if (!fields.at("benchmark").is_array()) return {fields.require<std::string>("benchmark")};
  auto names = fields.require<std::vector<std::string>>("benchmark");
  if (names.empty() || names.size() > kMaxOptions) {
    fields.fail_key("benchmark", fmt::format("expected 1 to {} benchmarks, got {}", kMaxOptions, names.size()));
  }
  std::vector<std::string> sorted_names = names;
  std::ranges::sort(sorted_names);
  if (std::ranges::adjacent_find(sorted_names) != sorted_names.end()) {
    fields.fail_key("benchmark", "a benchmark is given more than once");
  }
  return names;
}

}  // namespace

Json point_identity(const Point& point, const std::string& fabric) {
  return Json{{"benchmark", point.benchmark},
              {"params", point.params},
              {"repetition", point.repetition},
              {"seed", point.seed},
              {"fabric", fabric}};
}

Json sweep_properties(const Sweep& sweep, const Point& point) {
  Json out{{"sweep", sweep.where}, {"place", point.place}};
  const auto add = [&out](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  add("label", point.label);
  if (!sweep.vary.empty()) add("along", sweep.vary.back().first);
  add("figure", sweep.figure);
  for (const std::string& key : sweep.show) {
    if (key != "rate_mops") out["show"].push_back(key);
  }
  return out;
}

Sweep parse_sweep(std::string_view text, const std::string& where) {
  const Json json = parse_json_text(text, where);
  JsonFields fields(json, where);
  const auto schema = fields.require<std::string>("schema");
  if (schema != kSweepSchema)
    fields.fail_key("schema", fmt::format("expected \"{}\", got \"{}\"", kSweepSchema, schema));
  Sweep sweep;
  sweep.where = where;
  sweep.benchmarks = parse_benchmarks(fields);
  sweep.description = fields.optional<std::string>("description", "");
  sweep.figure = fields.optional<std::string>("figure", "");
  if (fields.has("fabrics")) sweep.fabrics = parse_fabrics(fields.at("fabrics"), where + ": fabrics");
  sweep.repetitions = fields.optional<int>("repetitions", 1, 1, 10'000);
  sweep.seed = fields.optional<std::uint64_t>("seed", 1);
  sweep.show = fields.optional<std::vector<std::string>>("show", sweep.show);
  if (sweep.show.empty()) fields.fail_key("show", "expected at least one key of a result");
  if (fields.has("fixed")) sweep.fixed = parse_params(fields.at("fixed"), where + ": fixed");
  if (fields.has("fixed_on")) sweep.fixed_on = parse_fixed_on(fields.at("fixed_on"), where + ": fixed_on");
  if (fields.has("vary")) sweep.vary = parse_vary(fields.at("vary"), where + ": vary");
  if (fields.has("points")) {
    const auto points = fields.require<std::vector<Json>>("points");
    if (points.empty()) fields.fail_key("points", "expected at least one point");
    for (std::size_t i = 0; i < points.size(); ++i)
      sweep.points.push_back(parse_point(points[i], point_where(sweep, i)));
  }
  fields.reject_unknown();
  check_entries(sweep);
  check_no_overlap(sweep);
  check_count(sweep);
  return sweep;
}

bool is_reserved_option(std::string_view option) {
  return std::ranges::find(kReservedKeys, option) != kReservedKeys.end();
}

void check_sweep(Sweep& sweep, const BenchmarkSpec& spec) {
  check_seeds(sweep, spec);
  check_params(sweep.fixed, spec, sweep.where + ": fixed");
  for (auto& [fabric, params] : sweep.fixed_on) {
    check_params(params, spec, fmt::format("{}: fixed_on: \"{}\"", sweep.where, fabric));
  }
  for (auto& [key, values] : sweep.vary) {
    for (Json& value : values) check_value(key, value, spec, sweep.where + ": vary");
  }
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (is_for(sweep.points[i], spec.name)) check_params(sweep.points[i].overrides, spec, point_where(sweep, i));
  }
  sweep.specs.insert_or_assign(spec.name, spec);
}

void override_key(Sweep& sweep, const std::string& key, const Json& value) {
  remove_key(sweep, key);
  sweep.fixed[key] = value;
}

void vary_key(Sweep& sweep, const std::string& key, std::vector<Json> values) {
  remove_key(sweep, key);
  sweep.vary.emplace_back(key, std::move(values));
}

std::vector<Point> expand_sweep(const Sweep& sweep, const std::string& fabric) {
  check_count(sweep);                             // the caller may have raised the repetitions
  std::vector<std::pair<std::size_t, Json>> all;  // options, with the index of the entry of `points`
  const std::vector<SweepPoint> entries = sweep.points.empty() ? std::vector<SweepPoint>(1) : sweep.points;
  for (std::size_t entry = 0; fabric_allowed(sweep.fabrics, fabric) && entry < entries.size(); ++entry) {
    if (!fabric_allowed(entries[entry].fabrics, fabric)) continue;
    Json params = sweep.fixed;
    for (const auto& [where, options] : sweep.fixed_on) {
      if (fabric_allowed({where}, fabric)) params.update(options);
    }
    params.update(entries[entry].overrides);
    std::vector<Json> crossed;
    cross_product(sweep, 0, params, crossed);
    for (Json& each : crossed) all.emplace_back(entry, std::move(each));
  }
  if (all.empty()) fail("{}: no point runs on {}: see its \"fabrics\"", sweep.where, fabric);
  std::set<std::string> seen;
  std::vector<Point> round;
  for (const std::string& benchmark : sweep.benchmarks) {
    for (const auto& [entry, crossed] : all) {
      if (!is_for(entries[entry], benchmark)) continue;
      const Json params = options_of(sweep, benchmark, crossed, fabric);
      if (!seen.insert(benchmark + point_key(params)).second) continue;
      round.push_back({.benchmark = benchmark,
                       .params = params,
                       .seed = sweep.seed,
                       .entry = entry,
                       .label = entries[entry].label,
                       .place = round.size()});
    }
  }
  if (sweep.repetitions == 1) return round;
  std::vector<Point> points;
  for (int r = 0; r < sweep.repetitions; ++r) {
    const std::uint64_t seed = sweep.seed + static_cast<std::uint64_t>(r);
    for (const std::size_t i : shuffled(round.size(), seed)) {
      points.push_back(round[i]);
      points.back().repetition = r;
      points.back().seed = seed;
    }
  }
  return points;
}

std::vector<std::string> fabrics_without_hosts(const Sweep& sweep) {
  std::vector<std::string> places;
  const auto add = [&places](const std::vector<std::string>& fabrics) {
    for (const std::string& fabric : fabrics) {
      const bool place = is_simulated(fabric) || fabric == "null" || fabric == kHostFabric;
      if (place && std::ranges::find(places, fabric) == places.end()) places.push_back(fabric);
    }
  };
  add(sweep.fabrics);
  if (sweep.fabrics.empty()) {
    for (const SweepPoint& point : sweep.points) add(point.fabrics);
  }
  return places;
}

bool fabric_allowed(const std::vector<std::string>& fabrics, const std::string& fabric) {
  const std::string kind = fabric.substr(0, fabric.find(':'));
  std::string name = fabric;
  if (kind == "sim" && fabric.ends_with(".json")) {
    const std::size_t start = fabric.find_last_of("/:") + 1;
    name = "sim:" + fabric.substr(start, fabric.size() - start - 5);
  }
  return fabrics.empty() || std::ranges::any_of(fabrics, [&](const std::string& allowed) {
           return allowed == fabric || allowed == name || allowed == kind;
         });
}

}  // namespace verbscope
