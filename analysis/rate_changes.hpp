// Changes of the rate between points, and the counters that show their cause: between two records, or along the option
// that a sweep varies. Knee: the rate stops rising, or starts to fall. Cliff: it drops between two neighbouring values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The first cause that was counted clearly more often per operation in `after` than in `before`, as a clause: "WQE
// cache, 0.7 re-reads per operation". First what the adapters counted, then PCIe reads, PCIe writes and MMIO, which
// show a cause indirectly. Returns nothing if no counter that both records have rose.
std::optional<std::string> counted_cause(const Record& before, const Record& after);

// RNR NAKs, losses and congestion that a record's adapters counted often enough to cost throughput.
struct CountedStall {
  std::string cause, unit, counter;  // "congestion", "CNPs sent", "np_cnp_sent"
  double per_op;
  std::string changed_by;  // options that change the cause, as the end of a clause; may be empty
};
std::vector<CountedStall> counted_stalls(const Record& record);

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

}  // namespace verbscope
