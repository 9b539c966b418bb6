// Checks that a history is linearizable: each operation on a key takes effect at one moment between its invocation and
// its completion, and a GET returns the value of the last PUT that took effect before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "systems/history/history.hpp"

namespace verbscope {

// In the order of evidence: the first that applies is reported.
enum class ViolationKind {
  stale_read,         // a GET returned an overwritten value, and a later GET the newer one
  put_applied_twice,  // an overwritten value came back and stayed; also if later PUTs that had been read were lost
  lost_put,           // an acknowledged PUT is missing in all later answers
  unknown_value,      // a GET returned a value that no PUT had written
  no_order            // the operations have no order, for another reason
};

// The first GET of a key that fits into no order. `text` describes it with the other operations, on one line.
struct HistoryViolation {
  ViolationKind kind;
  HistoryEvent get;
  std::string text;
};

struct HistoryCheck {
  std::size_t clients = 0, keys = 0, gets = 0, puts = 0, unknown = 0;  // unknown: of these, without an answer
  std::vector<HistoryViolation> violations;                            // at most one per key, in the order of keys
  bool linearizable() const { return violations.empty(); }
};

// Keys are independent: the history is linearizable if the operations of each key are (Herlihy and Wing,
// "Linearizability: A Correctness Condition for Concurrent Objects", TOPLAS 1990). Times that are equal are concurrent.
// The time is proportional to operations times concurrency if PUTs of a key have different values, and can be
// exponential in the concurrent operations if not. Throws Error if a key has more possible orders at a time than memory
// allows.
HistoryCheck check_linearizable(std::span<const HistoryEvent> events);

}  // namespace verbscope
