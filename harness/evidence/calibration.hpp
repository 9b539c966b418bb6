// Calibration of cluster profiles: the calibrated parameters, the rows that a joint fit uses, and the rows that the
// parameters were fitted to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "harness/evidence/evidence.hpp"

namespace verbscope {

// A parameter of a profile: {"value": V, "source": "calibrated", "row": ROW, "cite": ...} at `pointer`. ROW names the
// data of the fit: a row, the source or the set of measured rows, or a joint fit (JointFitName).
struct CalibratedParameter {
  nlohmann::json_pointer<std::string> pointer;
  std::string name;  // "section.key"
  std::string row;
  bool integer = false;
  double value = 0;
};

// The calibrated numbers of a profile, in the order of the file, without calibrated names. Throws Error if one is not
// above 0 or has no row.
std::vector<CalibratedParameter> calibrated_parameters(const Json& profile, const std::string& where);

// Name of a joint fit of a cluster in the parameters of a profile: "60 rows, seed 1", or "60 rows of rc-swarm, seed 1"
// if the measured rows are of one set.
struct JointFitName {
  std::size_t rows = 0;
  std::uint64_t seed = 0;
  std::string set{};  // empty: all sets

  std::string text() const;
};

// Returns nothing if the text is no such name.
std::optional<JointFitName> parse_joint_fit(const std::string& text);

// Indexes of the rows for a joint fit of the cluster, ascending. Only rows that can run, use a benchmark, and must
// equal their value. All published rows of use "calibration", then measured rows drawn with the seed, up to `fit.rows`
// in all. Rows that count by shape are dropped if the draw has too few of their source.
std::vector<std::size_t> rows_to_fit(const std::vector<EvidenceRow>& rows, const std::string& cluster,
                                     const JointFitName& fit);

// Number of calibrated parameters in a cluster's profile, and of the rows that they were fitted to.
struct FittedCluster {
  std::string cluster;
  std::size_t parameters = 0, rows = 0;
};

// True if a calibrated parameter with this `row` was fitted to `row`: the name is that of the row, its source or its
// set.
bool is_fitted_to(const std::string& name, const EvidenceRow& row);

// Counts the calibrated parameters of the profiles of all rows. Marks a measured row as calibration if a parameter
// names it, directly or by a joint fit to `shipped` rows. Published rows state their use in their table.
std::vector<FittedCluster> mark_fitted_rows(std::vector<EvidenceRow>& rows, const std::vector<EvidenceRow>& shipped);

}  // namespace verbscope
