#include "harness/evidence/fitted.hpp"

#include <set>

#include "common/paths.hpp"
#include "harness/evidence/calibrated_parameters.hpp"
#include "harness/evidence/fit_rows.hpp"

namespace verbscope {
namespace {

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

bool is_fitted_to(const std::string& name, const EvidenceRow& row) {
  const bool measured = !row.columns.empty();
  return name == row.point.id || (measured && (name == row.point.where || name == row.point.paper));
}

std::vector<FittedCluster> note_fitted(std::vector<EvidenceRow>& rows, const std::vector<EvidenceRow>& shipped) {
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
