// Where the rate bends along an option that a sweep varies: knees, at which it stops to rise or begins to fall, and
// cliffs, at which it drops from one value to the next; each with its cause.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A point of a curve: the mean rate of its repetitions, and one of them.
struct BendPoint {
  double x = 0, mops = 0;
  const Record* record = nullptr;
};

struct Bend {
  enum class Kind { knee, cliff };
  Kind kind = Kind::knee;
  std::size_t at = 0;  // the point
  std::string text;    // "cliff at 48 threads: WQE cache, 0.7 re-reads per operation"
};

// The bends of the curve along `option`, whose points rise in x: three at least, else there are none. A knee is the
// first point with 90 % of the largest rate, or the last before the rate falls below that without a cliff. A cliff is a
// drop by more than 10 %; along `size` of the bytes per second as well. The cause is what the counters say, else the
// limit that `explain` names in closed form.
std::vector<Bend> bends_along(const std::string& option, const std::vector<BendPoint>& points);

// The limit that `explain` names for the record in closed form: "NIC responder units"; "not decided".
std::string closed_form_limit(const Record& record);

}  // namespace verbscope
