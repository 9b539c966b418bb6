#include "analysis/curves.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/where.hpp"
#include "common/environment.hpp"

namespace verbscope {
namespace {

constexpr const char* kRateKey = "rate_mops";

// The records among which options are compared: those of one benchmark, fabric and label.
using Family = std::tuple<std::string, std::string, std::string>;

Family family_of(const Record& record) {
  return {record.benchmark, short_fabric(text_at(record.environment, "fabric")), label_of(record)};
}

// The options other than x that differ within each family, in the order of the records.
std::map<Family, std::vector<std::string>> differing_options(const std::vector<const Record*>& records,
                                                             const std::string& x) {
  struct Option {
    std::string key;
    std::set<std::string> values;
  };
  std::map<Family, std::vector<Option>> seen;
  for (const Record* record : records) {
    std::vector<Option>& options = seen[family_of(*record)];
    for (const std::string& key : option_keys(*record)) {
      const bool is_x = key == x || key + "_s" == x;
      if (!is_x && std::ranges::find(options, key, &Option::key) == options.end()) options.push_back({key, {}});
    }
  }
  for (const Record* record : records) {
    for (Option& option : seen[family_of(*record)]) option.values.insert(option_text(*record, option.key));
  }
  std::map<Family, std::vector<std::string>> differing;
  for (const auto& [family, options] : seen) {
    for (const Option& option : options) {
      if (option.values.size() > 1) differing[family].push_back(option.key);
    }
  }
  return differing;
}

std::string rest_of(const Record& record, const std::vector<std::string>& differing) {
  std::string rest = label_of(record);
  for (const std::string& key : differing) {
    const std::string value = option_text(record, key);
    if (value != "-") rest += fmt::format("{}{}={}", rest.empty() ? "" : " ", key, value);
  }
  return rest;
}

// Names that are as short as they can be: the benchmark and the fabric are told only where they tell curves apart.
void name_curves(std::vector<Curve>& curves) {
  std::set<std::string> fabrics;
  std::set<std::pair<std::string, std::string>> known;
  bool told_by_rest = true;
  for (const Curve& curve : curves) {
    fabrics.insert(curve.fabric);
    told_by_rest &= !curve.rest.empty() && known.emplace(curve.fabric, curve.rest).second;
  }
  std::set<std::string> benchmarks;
  for (const Curve& curve : curves) benchmarks.insert(curve.benchmark);
  for (Curve& curve : curves) {
    const auto add = [&curve](const std::string& text) { curve.name += (curve.name.empty() ? "" : " ") + text; };
    if (benchmarks.size() > 1 && !told_by_rest) add(curve.benchmark);
    if (fabrics.size() > 1) add(curve.fabric);
    if (!curve.rest.empty()) add(curve.rest);
    if (curve.name.empty()) curve.name = curve.benchmark;
  }
}

}  // namespace

std::string config_key(const std::vector<const Record*>& records, const std::string& x) {
  const auto has_number = [&x](const Record* record) { return number_at(record->config, x).has_value(); };
  return std::ranges::any_of(records, has_number) ? x : x + "_s";
}

std::vector<Curve> curves_of(const std::vector<const Record*>& records, const std::string& x, const std::string& y,
                             const std::vector<PublishedPoint>& published) {
  std::vector<const Record*> drawn = records;
  std::erase_if(drawn, [&](const Record* record) {
    return record->status == RecordStatus::failed || !number_at(record->config, x) || !number_at(record->result, y);
  });
  const auto differing = differing_options(drawn, x);
  std::vector<Curve> curves;
  for (const Record* record : drawn) {
    const Family family = family_of(*record);
    const auto keys = differing.find(family);
    const std::string rest = rest_of(*record, keys == differing.end() ? std::vector<std::string>{} : keys->second);
    auto curve = std::ranges::find_if(curves, [&](const Curve& each) {
      return each.benchmark == record->benchmark && each.fabric == std::get<1>(family) && each.rest == rest;
    });
    if (curve == curves.end()) {
      curve = curves.insert(curves.end(), Curve{.benchmark = record->benchmark,
                                                .fabric = std::get<1>(family),
                                                .rest = rest,
                                                .name = "",
                                                .simulated = is_simulated(text_at(record->environment, "fabric")),
                                                .spots = {}});
    }
    CurveSpot& spot = curve->spots[*number_at(record->config, x)];
    spot.values.push_back(*number_at(record->result, y));
    const auto prediction = y == kRateKey ? prediction_of(*record) : std::nullopt;
    if (prediction) spot.bound_mops = prediction->bound_mops;
    const PublishedPoint* row = find_published(published, *record);
    if (row != nullptr && row->run.result_key == y) spot.published = row;
  }
  name_curves(curves);
  return curves;
}

}  // namespace verbscope
