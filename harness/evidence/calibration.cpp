#include "harness/evidence/calibration.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "common/paths.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

using Pointer = nlohmann::json_pointer<std::string>;

void collect(const Json& node, const Pointer& at, const std::string& name, const std::string& where,
             std::vector<CalibratedParameter>& out) {
  if (!node.is_object()) return;
  if (node.contains("value") && node.value("source", Json()) == "calibrated") {
    const std::string what = where + ": " + name;
    JsonFields fields(node, what);
    const Json& value = fields.at("value");
    if (value.is_string()) return;  // a choice between mechanisms: no fit changes it
    if (!value.is_number() || !(value.get<double>() > 0)) fields.fail_key("value", "expected a number above 0");
    out.push_back({.pointer = at,
                   .name = name,
                   .row = fields.require<std::string>("row"),
                   .integer = value.is_number_integer(),
                   .value = value.get<double>()});
    return;
  }
  for (const auto& [key, child] : node.items()) {
    collect(child, at / key, name.empty() ? key : name + "." + key, where, out);
  }
}

// Drops rows that count by shape if too few of their group are left.
void drop_lone_shapes(const std::vector<EvidenceRow>& rows, std::vector<std::size_t>& taken) {
  std::map<std::string, std::size_t> groups;
  for (const std::size_t i : taken) ++groups[shape_group(rows[i])];
  std::erase_if(taken, [&](std::size_t i) { return rows[i].by_shape && groups[shape_group(rows[i])] < kMinShapeRows; });
}

// The rows that the parameters of a cluster were fitted to, by id.
std::set<std::string> ids_fitted(const std::vector<CalibratedParameter>& parameters, const std::string& cluster,
                                 const std::vector<EvidenceRow>& shipped) {
  std::set<std::string> ids;
  for (const CalibratedParameter& parameter : parameters) {
    if (const auto joint = parse_joint_fit(parameter.row)) {
      for (const std::size_t i : rows_to_fit(shipped, cluster, *joint)) ids.insert(shipped[i].point.id);
    }
    for (const EvidenceRow& row : shipped) {
      if (row.point.cluster == cluster && is_fitted_to(parameter.row, row)) ids.insert(row.point.id);
    }
  }
  return ids;
}

}  // namespace

std::vector<CalibratedParameter> calibrated_parameters(const Json& profile, const std::string& where) {
  std::vector<CalibratedParameter> out;
  collect(profile, Pointer(), "", where, out);
  return out;
}

std::string JointFitName::text() const {
  return fmt::format("{} rows{}, seed {}", rows, set.empty() ? "" : " of " + set, seed);
}

std::optional<JointFitName> parse_joint_fit(const std::string& text) {
  static const std::regex kForm("([0-9]+) rows( of ([^ ,]+))?, seed ([0-9]+)");
  std::smatch parts;
  if (!std::regex_match(text, parts, kForm)) return std::nullopt;
  const auto rows = number_from<std::size_t>(parts[1].str());
  const auto seed = number_from<std::uint64_t>(parts[4].str());
  if (!rows || !seed) return std::nullopt;
  return JointFitName{.rows = *rows, .seed = *seed, .set = parts[3].str()};
}

std::vector<std::size_t> rows_to_fit(const std::vector<EvidenceRow>& rows, const std::string& cluster,
                                     const JointFitName& fit) {
  std::vector<std::size_t> taken, measured;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PublishedPoint& point = rows[i].point;
    if (point.cluster != cluster || !rows[i].not_run.empty() || point.modelled()) continue;
    if (point.comparison != Comparison::equals) continue;
    if (!rows[i].columns.empty()) {
      if (fit.set.empty() || fit.set == point.paper) measured.push_back(i);
    } else if (point.calibration && taken.size() < fit.rows) {
      taken.push_back(i);
    }
  }
  for (const std::size_t i : draw_numbers(measured.size(), fit.rows - taken.size(), fit.seed))
    taken.push_back(measured[i]);
  drop_lone_shapes(rows, taken);
  std::ranges::sort(taken);
  return taken;
}

bool is_fitted_to(const std::string& name, const EvidenceRow& row) {
  const bool measured = !row.columns.empty();
  return name == row.point.id || (measured && (name == row.point.where || name == row.point.paper));
}

std::vector<FittedCluster> mark_fitted_rows(std::vector<EvidenceRow>& rows, const std::vector<EvidenceRow>& shipped) {
  std::set<std::string> clusters;
  for (const EvidenceRow& row : rows) clusters.insert(row.point.cluster);
  std::vector<FittedCluster> out;
  for (const std::string& name : list_configs("clusters")) {
    if (!clusters.contains(name)) continue;
    const std::filesystem::path path = find_config("clusters", name);
    const auto parameters = calibrated_parameters(read_json_file(path), path.string());
    const std::set<std::string> fitted = ids_fitted(parameters, name, shipped);
    out.push_back({.cluster = name, .parameters = parameters.size(), .rows = fitted.size()});
    for (EvidenceRow& row : rows) {
      const bool measured = !row.columns.empty();
      if (measured && row.point.cluster == name && fitted.contains(row.point.id)) row.point.calibration = true;
    }
  }
  return out;
}

}  // namespace verbscope
