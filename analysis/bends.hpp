// Where the rate bends along an option that a sweep varies: knees, at which it stops to rise or begins to fall, and
// cliffs, at which it drops from one value to the next; each with its cause.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A point of a curve: the mean rate of its repetitions, one of them, and the name of its limit.
struct BendPoint {
  double x = 0, mops = 0;
  const Record* record = nullptr;
  std::string limit;  // "not decided" where there is none
};

struct Bend {
  enum class Kind { knee, cliff };
  Kind kind = Kind::knee;
  std::size_t at = 0;  // the point
  std::string place;   // "knee at 64 B", "cliff at 48 threads"
  std::string cause;   // "WQE cache, 0.7 re-reads per operation"

  std::string text() const { return place + ": " + cause; }
};

// The bends of the curve along `option`, whose points rise in x. A knee is the first point with 90 % of the largest
// rate, or the last before the rate falls below that without a cliff; it takes three points. A cliff is a drop by more
// than 10 %; along `size` of the bytes per second as well. The cause is what the counters say, else the point's limit.
std::vector<Bend> bends_along(const std::string& option, const std::vector<BendPoint>& points);

// The limit that `explain` names for the record in closed form: "NIC responder units"; "not decided".
std::string closed_form_limit(const Record& record);

}  // namespace verbscope
