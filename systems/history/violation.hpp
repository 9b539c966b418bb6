// The description of a violation by the operations that contradict each other.
#pragma once

#include <span>

#include "systems/history/linearizable.hpp"

namespace verbscope {

// `events`: all operations of the key. `get`: one of them, which ends the longest prefix, in time, without an order.
HistoryViolation describe_violation(std::span<const HistoryEvent* const> events, const HistoryEvent& get);

}  // namespace verbscope
