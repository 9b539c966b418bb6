#include "analysis/published.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "analysis/points.hpp"
#include "common/paths.hpp"

namespace verbscope {
namespace {

MatchKey parse_match_key(const std::string& key, const Json& json, const std::string& where) {
  if (!json.is_object()) return {.key = key, .run = json};
  JsonFields fields(json, where + ": " + key);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  MatchKey match{.key = key, .run = fields.require<Json>("run"), .range = true};
  match.min = fields.optional<double>("min", -kInfinity);
  match.max = fields.optional<double>("max", kInfinity);
  fields.reject_unknown();
  if (!match.accepts(match.run)) fields.fail_key("run", "is not within min and max");
  return match;
}

PublishedRun parse_run(JsonFields& fields, const std::string& where) {
  PublishedRun run;
  const bool predicted = fields.has("predict");
  if (!predicted) run.benchmark = fields.require<std::string>("benchmark");
  run.result_key = fields.require<std::string>("metric");
  const Json& keys = fields.at(predicted ? "predict" : "config");
  if (!keys.is_object() || keys.empty())
    fields.fail_key(predicted ? "predict" : "config", "expected an object of keys");
  for (const auto& [key, value] : keys.items()) run.keys.push_back(parse_match_key(key, value, where));
  return run;
}

constexpr std::array kCombinations = {
    std::pair("over", Combination::ratio), std::pair("minus", Combination::difference),
    std::pair("above", Combination::percent_above), std::pair("below", Combination::percent_below)};

// The second run of a row, which must be a benchmark.
void parse_second(JsonFields& match, const std::string& where, PublishedPoint& point) {
  const char* found = nullptr;
  for (const auto& [key, combination] : kCombinations) {
    if (!match.has(key)) continue;
    if (found != nullptr) match.fail_key(key, fmt::format("not allowed together with \"{}\"", found));
    found = key;
    JsonFields fields = match.object(key);
    point.second = parse_run(fields, where + ": " + key);
    point.combination = combination;
    fields.reject_unknown();
    if (point.second->benchmark.empty()) match.fail_key(key, "expected a benchmark");
  }
}

std::optional<CurvePlace> parse_along(JsonFields& match, const PublishedPoint& point) {
  if (!match.has("along")) return std::nullopt;
  JsonFields fields = match.object("along");
  CurvePlace along;
  along.option = fields.require<std::string>("option");
  along.values = fields.require<std::vector<double>>("values");
  const auto place = fields.require<std::string>("place");
  fields.reject_unknown();
  if (place == "overtakes") {
    along.kind = CurvePlace::Kind::overtakes;
  } else if (place == "holds") {
    along.kind = CurvePlace::Kind::holds;
  } else if (place != "reaches") {
    fields.fail_key("place", fmt::format("expected reaches, holds or overtakes, got \"{}\"", place));
  }
  if (along.values.size() < 2 || !std::ranges::is_sorted(along.values, std::less_equal<>())) {
    fields.fail_key("values", "expected at least two, each larger than the one before");
  }
  if (std::ranges::find(along.values, point.value) == along.values.end()) {
    fields.fail_key("values", fmt::format("the row's value {:g} is not among them", point.value));
  }
  const bool is_ratio = point.second && point.combination == Combination::ratio;
  if (along.kind == CurvePlace::Kind::overtakes && !is_ratio) fields.fail_key("place", "overtakes needs \"over\"");
  return along;
}

void parse_match(const Json& json, const std::string& where, PublishedPoint& point) {
  JsonFields fields(json, where);
  point.on_host = fields.has("fabric");
  if (point.on_host && fields.require<std::string>("fabric") != "host") {
    fields.fail_key("fabric", "expected host (rows of a simulated cluster have no fabric)");
  }
  point.run = parse_run(fields, where);
  parse_second(fields, where, point);
  point.along = parse_along(fields, point);
  fields.reject_unknown();
  if ((!point.single() || point.on_host) && point.modelled())
    fail("{}: a figure of several runs needs benchmarks", where);
}

Comparison parse_comparison(JsonFields& fields) {
  const auto text = fields.optional<std::string>("compare", to_string(Comparison::equals));
  for (const Comparison each : {Comparison::equals, Comparison::at_least, Comparison::at_most}) {
    if (text == to_string(each)) return each;
  }
  fields.fail_key("compare", fmt::format("expected equals, at_least or at_most, got \"{}\"", text));
}

// The value. Only a row that nothing reproduces may lack it.
double parse_value(JsonFields& fields, const PublishedPoint& point) {
  if (!fields.has("value") && !point.needs.empty()) return 0;
  const auto value = fields.require<double>("value");
  if (!(value > 0)) fields.fail_key("value", "expected more than 0");
  return value;
}

std::optional<double> parse_tolerance(JsonFields& fields) {
  if (!fields.has("tolerance_percent")) return std::nullopt;
  const auto tolerance = fields.require<double>("tolerance_percent");
  if (!(tolerance > 0)) fields.fail_key("tolerance_percent", "expected more than 0");
  return tolerance;
}

PublishedPoint parse_point(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  PublishedPoint point;
  point.id = fields.require<std::string>("id");
  point.paper = fields.require<std::string>("paper");
  point.where = fields.require<std::string>("where");
  point.cluster = fields.require<std::string>("cluster");
  point.what = fields.require<std::string>("what");
  point.metric = fields.require<std::string>("metric");
  point.needs = fields.optional<std::string>("needs", "");
  point.value = parse_value(fields, point);
  point.comparison = parse_comparison(fields);
  point.tolerance_percent = parse_tolerance(fields);
  point.bottleneck = fields.optional<std::string>("bottleneck", "");
  const auto use = fields.require<std::string>("use");
  if (use != "calibration" && use != "prediction") fields.fail_key("use", "expected calibration or prediction");
  point.calibration = use == "calibration";
  if (fields.has("match")) parse_match(fields.at("match"), where + ": match", point);
  point.slow = fields.optional<bool>("slow", false);
  point.known_miss = fields.optional<std::string>("known_miss", "");
  if (!point.known_miss.empty() && !point.needs.empty()) fields.fail_key("known_miss", "not allowed with \"needs\"");
  if (fields.has("match") != point.needs.empty()) fail("{}: expected either \"match\" or \"needs\"", where);
  fields.reject_unknown();
  return point;
}

std::vector<PublishedPoint> points_of(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  const auto schema = fields.require<std::string>("schema");
  if (schema != kPublishedSchema) {
    fields.fail_key("schema", fmt::format("expected \"{}\", got \"{}\"", kPublishedSchema, schema));
  }
  fields.optional<std::string>("comment", "");
  std::vector<PublishedPoint> points;
  for (const Json& each : fields.require<std::vector<Json>>("points")) {
    points.push_back(parse_point(each, fmt::format("{}: points[{}]", where, points.size())));
  }
  fields.reject_unknown();
  return points;
}

// Options that do not affect the figure: length of the run, counters and checks, and conditions for failure.
constexpr std::array<std::string_view, 16> kNeutralOptions = {
    "duration",         "warmup",   "longest",       "iters",        "run_infinitely", "counter_sources",
    "require_counters", "limit_bw", "limit_msgrate", "report_gbits", "any_build",      "CPU_freq",
    "noPeak",           "validate", "qp_timeout",    "rdma_cm"};

// True if an option of the record does not affect the figure of a row that does not name the option.
bool does_not_affect_figure(const Record& record, const std::string& key) {
  if (std::ranges::find(kNeutralOptions, key) != kNeutralOptions.end()) return true;
  // A header-only message has no payload, so its size and inlining do not matter.
  if (record.config.value("header_only", Json()) == true) {
    if (key == "size" || key == "inline_size") return true;
  }
  // recv_rate is send_rate --direction in, and how the peers carry the payload does not matter.
  if (record.benchmark == "recv_rate" && (key == "direction" || key == "inline_size")) return true;
  // Rows describe programs without shared registers, unless they name the option.
  return key == "uars" && record.config.value("uars", Json()) == "exclusive";
}

// True if every changed option of the record is named by the row or does not affect the figure. Also true for records
// of versions that do not store the changed options.
bool changed_nothing_else(const PublishedRun& run, const Record& record) {
  const auto changed = changed_options(record);
  return !changed || std::ranges::all_of(*changed, [&](const std::string& key) {
    return does_not_affect_figure(record, key) || std::ranges::find(run.keys, key, &MatchKey::key) != run.keys.end();
  });
}

}  // namespace

double combined(Combination combination, double a, double b) {
  switch (combination) {
    case Combination::ratio:
      return a / b;
    case Combination::difference:
      return a - b;
    case Combination::percent_above:
      return 100 * (a / b - 1);
    case Combination::percent_below:
      break;
  }
  return 100 * (1 - a / b);
}

const char* to_string(Comparison comparison) {
  switch (comparison) {
    case Comparison::equals:
      return "equals";
    case Comparison::at_least:
      return "at_least";
    case Comparison::at_most:
      return "at_most";
  }
  return "?";
}

bool MatchKey::accepts(const Json& value) const {
  if (!range) return value == run;
  return value.is_number() && value.get<double>() >= min && value.get<double>() <= max;
}

Json PublishedRun::params() const {
  Json params = Json::object();
  for (const MatchKey& match : keys) params[match.key] = match.run;
  return params;
}

bool PublishedRun::accepts(const Json& values) const {
  return std::ranges::all_of(keys, [&values](const MatchKey& match) {
    if (std::ranges::find(kNeutralOptions, match.key) != kNeutralOptions.end()) return true;
    const auto found = values.find(match.key);
    return found != values.end() && match.accepts(*found);
  });
}

std::optional<double> CurvePlace::find_position(const std::vector<double>& figures) const {
  const double peak = kPeakShare * *std::ranges::max_element(figures);
  const auto high = [peak](double figure) { return figure >= peak; };
  const auto at = [&](auto found) { return values.at(static_cast<std::size_t>(found - figures.begin())); };
  switch (kind) {
    case Kind::reaches:
      return at(std::ranges::find_if(figures, high));
    case Kind::holds: {
      const auto fallen = std::ranges::find_if_not(figures, high);
      return fallen == figures.begin() ? std::nullopt : std::optional(at(fallen - 1));
    }
    case Kind::overtakes: {
      const auto last_below = std::find_if(figures.rbegin(), figures.rend(), [](double ratio) { return ratio < 1; });
      return last_below == figures.rbegin() ? std::nullopt : std::optional(at(last_below.base()));
    }
  }
  return std::nullopt;
}

double PublishedPoint::deviation_of(double figure) const {
  if (along) {
    const auto step = [this](double x) { return std::ranges::lower_bound(along->values, x) - along->values.begin(); };
    if (std::abs(step(figure) - step(value)) <= 1) return 0;
  }
  return exact_deviation_of(figure);
}

double PublishedPoint::exact_deviation_of(double figure) const {
  const double deviation = deviation_percent(figure, value);
  switch (comparison) {
    case Comparison::equals:
      return deviation;
    case Comparison::at_least:
      return std::min(deviation, 0.0);
    case Comparison::at_most:
      return std::max(deviation, 0.0);
  }
  return deviation;
}

double PublishedPoint::limit_percent() const {
  return tolerance_percent.value_or(calibration ? kCalibratedPercent : kPredictedPercent);
}

std::string PublishedPoint::value_text() const {
  if (value == 0) return "?";
  const char* relation = comparison == Comparison::equals ? "" : comparison == Comparison::at_least ? ">= " : "<= ";
  return fmt::format("{}{:g}", relation, value);
}

std::vector<PublishedPoint> parse_published(std::string_view text, const std::string& where) {
  return points_of(parse_json_text(text, where), where);
}

std::vector<PublishedPoint> load_published() {
  const std::filesystem::path path = find_config("", "published");
  return points_of(read_json_file(path), path.string());
}

const PublishedPoint* find_published(const std::vector<PublishedPoint>& points, const Record& record) {
  const std::string fabric = record.environment.value("fabric", "");
  const auto found = std::ranges::find_if(points, [&](const PublishedPoint& point) {
    return point.reproducible() && point.single() && point.run.benchmark == record.benchmark &&
           fabric == "sim:" + point.cluster && record.result.contains(point.run.result_key) &&
           point.run.accepts(record.config) && changed_nothing_else(point.run, record);
  });
  return found == points.end() ? nullptr : &*found;
}

std::vector<const PublishedPoint*> find_predicted(const std::vector<PublishedPoint>& points, const std::string& cluster,
                                                  const Json& values) {
  std::vector<const PublishedPoint*> out;
  for (const PublishedPoint& point : points) {
    if (point.reproducible() && point.modelled() && point.cluster == cluster && point.run.accepts(values)) {
      out.push_back(&point);
    }
  }
  return out;
}

double deviation_percent(double value, double reference) {
  return (value / reference - 1) * 100;
}

std::string percent_text(double percent) {
  if (!std::isfinite(percent)) return percent > 0 ? "+inf" : "?";
  const std::string text = fmt::format("{:+.1f}", percent);
  return text == "+0.0" || text == "-0.0" ? "0.0" : text;
}

}  // namespace verbscope
