// Bends of the rate along the option that a sweep varies, each with its cause. Knee: the rate stops rising, or starts
// to fall. Cliff: the rate drops between two neighbouring values.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A point of a curve: the mean rate of its repetitions, the record of one of them, and the name of the point's limit.
struct BendPoint {
  double x = 0, mops = 0;
  const Record* record = nullptr;
  std::string limit;  // "not decided" if no limit was found
};

struct Bend {
  enum class Kind { knee, cliff };
  Kind kind = Kind::knee;
  std::size_t at = 0;  // index of the point
  std::string place;   // "knee at 64 B", "cliff at 48 threads"
  std::string cause;   // "WQE cache, 0.7 re-reads per operation"

  std::string text() const { return place + ": " + cause; }
};

// The bends of the curve along `option`. Precondition: the points are sorted by x.
//
// Knee: the first point with at least 90 % of the highest rate; and, on a curve without a cliff, the last such point if
// the rate then falls. Needs at least three points. Cliff: a drop by more than 10 %; along `size`, the bytes per second
// must drop that much, too. The cause comes from the counters, or is the point's limit.
std::vector<Bend> bends_along(const std::string& option, const std::vector<BendPoint>& points);

// The limit that `explain` finds for the record in closed form: "NIC responder units", or "not decided".
std::string closed_form_limit(const Record& record);

}  // namespace verbscope
