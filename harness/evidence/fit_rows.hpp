// Which rows a joint fit takes, and how they are folded for cross-validation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/evidence/evidence.hpp"

namespace verbscope {

// A joint fit of a cluster, as a profile's parameters name it: "60 rows, seed 1".
struct JointFitName {
  std::size_t rows = 0;
  std::uint64_t seed = 0;

  std::string text() const;
};
// Nothing when the text is not one.
std::optional<JointFitName> parse_joint_fit(const std::string& text);

// The places of the rows that a joint fit of the cluster takes, in rising order: rows that can run, of a benchmark,
// whose figure should equal the value; all published ones of use "calibration", and of the measured ones as many, drawn
// with the seed, as there is room for, less those of shapes that are too small.
std::vector<std::size_t> rows_to_fit(const std::vector<EvidenceRow>& rows, const std::string& cluster,
                                     const JointFitName& fit);

// 0 to size - 1 in `count` parts, drawn with the seed: no number in two of them, each in one, and none larger than
// another by more than one.
std::vector<std::vector<std::size_t>> folds(std::size_t size, std::size_t count, std::uint64_t seed);

}  // namespace verbscope
