// How many free parameters were fitted to how many rows, by what the profiles say of themselves.
#pragma once

#include <string>
#include <vector>

#include "harness/evidence/evidence.hpp"

namespace verbscope {

// The calibrated parameters of a cluster's profile, and the rows that they name.
struct FittedCluster {
  std::string cluster;
  std::size_t parameters = 0, rows = 0;
};

// Whether a calibrated parameter whose `row` says `name` was fitted to this row: the name is the row's, its source's or
// its set's.
bool is_fitted_to(const std::string& name, const EvidenceRow& row);

// Counts the calibrated parameters of every profile that rows are of, and makes a measured row that one of them names,
// by itself or by a joint fit (fit_rows.hpp) to `shipped` rows, a row of calibration. A published row says itself which
// it is.
std::vector<FittedCluster> note_fitted(std::vector<EvidenceRow>& rows, const std::vector<EvidenceRow>& shipped);

}  // namespace verbscope
