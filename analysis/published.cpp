#include "analysis/published.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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

void parse_match(const Json& json, const std::string& where, PublishedPoint& point) {
  JsonFields fields(json, where);
  const bool predicted = fields.has("predict");
  if (!predicted) point.benchmark = fields.require<std::string>("benchmark");
  point.result_key = fields.require<std::string>("metric");
  const Json& keys = fields.at(predicted ? "predict" : "config");
  if (!keys.is_object()) fields.fail_key(predicted ? "predict" : "config", "expected an object");
  for (const auto& [key, value] : keys.items()) point.keys.push_back(parse_match_key(key, value, where));
  fields.reject_unknown();
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
  point.value = fields.require<double>("value");
  if (!(point.value > 0)) fields.fail_key("value", "expected more than 0");
  point.bottleneck = fields.optional<std::string>("bottleneck", "");
  const auto use = fields.require<std::string>("use");
  if (use != "calibration" && use != "prediction") fields.fail_key("use", "expected calibration or prediction");
  point.calibration = use == "calibration";
  point.needs = fields.optional<std::string>("needs", "");
  if (fields.has("match")) parse_match(fields.at("match"), where + ": match", point);
  if (point.keys.empty() == point.needs.empty()) fail("{}: expected either \"match\" or \"needs\"", where);
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

bool accepts_all(const PublishedPoint& point, const Json& values) {
  return std::ranges::all_of(point.keys, [&values](const MatchKey& match) {
    const auto found = values.find(match.key);
    return found != values.end() && match.accepts(*found);
  });
}

}  // namespace

bool MatchKey::accepts(const Json& value) const {
  if (!range) return value == run;
  return value.is_number() && value.get<double>() >= min && value.get<double>() <= max;
}

Json PublishedPoint::run_params() const {
  Json params = Json::object();
  for (const MatchKey& match : keys) params[match.key] = match.run;
  return params;
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
    return point.reproducible() && point.benchmark == record.benchmark && fabric == "sim:" + point.cluster &&
           record.result.contains(point.result_key) && accepts_all(point, record.config);
  });
  return found == points.end() ? nullptr : &*found;
}

std::vector<const PublishedPoint*> find_predicted(const std::vector<PublishedPoint>& points, const std::string& cluster,
                                                  const Json& values) {
  std::vector<const PublishedPoint*> out;
  for (const PublishedPoint& point : points) {
    if (point.reproducible() && point.benchmark.empty() && point.cluster == cluster && accepts_all(point, values)) {
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
