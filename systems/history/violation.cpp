#include "systems/history/violation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace verbscope {

namespace {

// The operations on one value that matter to the failing GET: the first that completed, the last that was invoked
// before the GET's completion, and a GET after it.
struct ValueTimes {
  const HistoryEvent *first_completed = nullptr, *last_invoked = nullptr, *later_get = nullptr;
  const HistoryEvent* earlier_get = nullptr;  // completed before the failing GET
  const HistoryEvent* put = nullptr;          // the first
};

// The kinds of contradiction between the failing GET and another value, with the strongest evidence first.
ViolationKind kind_of(const ValueTimes& other, std::uint64_t returned) {
  if (other.later_get != nullptr) return ViolationKind::stale_read;
  // A value that no PUT wrote cannot come back by a second PUT.
  const bool was_read = other.earlier_get != nullptr && returned != kNoValue;
  return was_read ? ViolationKind::put_applied_twice : ViolationKind::lost_put;
}

std::string value_text(std::uint64_t value) {
  return value == kNoValue ? "no value" : fmt::format("value {}", value);
}
std::string time_text(const HistoryEvent& event) {
  const auto seconds = [](Nanos time) { return static_cast<double>(time.count()) * 1e-9; };
  return event.completed ? fmt::format("{:.9f} s to {:.9f} s", seconds(event.invoked), seconds(*event.completed))
                         : fmt::format("from {:.9f} s on", seconds(event.invoked));
}
// "PUT 5 of client 2 (value 7, 0.1 s to 0.2 s)"
std::string text_of(const HistoryEvent& event) {
  return fmt::format("{} {} of client {} ({}, {})", event.kind == OperationKind::get ? "GET" : "PUT", event.number,
                     event.client, value_text(event.value), time_text(event));
}

using ValueTable = std::map<std::uint64_t, ValueTimes>;

ValueTable values_of(std::span<const HistoryEvent* const> events, const HistoryEvent& get) {
  ValueTable values;
  const auto earlier_end = [](const HistoryEvent* one, const HistoryEvent& event) {
    return one == nullptr || *event.completed < *one->completed;
  };
  for (const HistoryEvent* const event : events) {
    const bool is_get = event->kind == OperationKind::get;
    if (is_get && !event->completed) continue;
    ValueTimes& times = values[event->value];
    if (!is_get && (times.put == nullptr || event->invoked < times.put->invoked)) times.put = event;
    if (event->completed && earlier_end(times.first_completed, *event)) times.first_completed = event;
    if (event->invoked <= *get.completed) {
      if (times.last_invoked == nullptr || event->invoked > times.last_invoked->invoked) times.last_invoked = event;
    } else if (is_get && times.later_get == nullptr) {
      times.later_get = event;
    }
    if (is_get && *event->completed < get.invoked && earlier_end(times.earlier_get, *event)) times.earlier_get = event;
  }
  return values;
}

std::string sentence(ViolationKind kind, const HistoryEvent& get, const ValueTimes& own, const ValueTimes& other) {
  const std::string newer = value_text(other.last_invoked->value);
  switch (kind) {
    case ViolationKind::stale_read:
      return fmt::format("stale read: {} returned an older value than {}; {} returned {} again", text_of(get),
                         text_of(*other.first_completed), text_of(*other.later_get), newer);
    case ViolationKind::put_applied_twice:
      return fmt::format("PUT applied twice, or a later PUT lost: {} returned {}, and after it {} returned {} of {}",
                         text_of(*other.earlier_get), newer, text_of(get), value_text(get.value),
                         own.put != nullptr ? text_of(*own.put) : "the beginning");
    default:
      return fmt::format(
          "acknowledged PUT lost: {} completed, and after it {} returned an older value; no GET returned {} later",
          text_of(*other.first_completed), text_of(get), newer);
  }
}

}  // namespace

HistoryViolation describe_violation(std::span<const HistoryEvent* const> events, const HistoryEvent& get) {
  const ValueTable values = values_of(events, get);
  const ValueTimes& own = values.at(get.value);
  HistoryViolation violation{ViolationKind::no_order, get, {}};
  if (get.value != kNoValue && (own.put == nullptr || own.put->invoked > *get.completed)) {
    violation.kind = ViolationKind::unknown_value;
    violation.text =
        fmt::format("key {}: unknown value: {}, but no PUT of this value had been invoked", get.key, text_of(get));
    return violation;
  }
  // Two values contradict each other if each has an operation that completed before one of the other's was invoked
  // (Gibbons and Korach, "Testing Shared Memories", SIAM J. Comput. 1997).
  const ValueTimes* strongest = nullptr;
  for (const auto& [value, other] : values) {
    if (value == get.value || other.first_completed == nullptr || other.last_invoked == nullptr) continue;
    const bool is_newer = get.value == kNoValue || *own.first_completed->completed < other.last_invoked->invoked;
    if (!is_newer || *other.first_completed->completed >= get.invoked) continue;
    const ViolationKind kind = kind_of(other, get.value);
    if (kind < violation.kind ||
        (kind == violation.kind && *other.first_completed->completed > *strongest->first_completed->completed)) {
      violation.kind = kind;
      strongest = &other;
    }
  }
  violation.text = fmt::format("key {}: {}", get.key,
                               strongest != nullptr ? sentence(violation.kind, get, own, *strongest)
                                                    : text_of(get) + " fits into no order of the operations before it");
  return violation;
}

}  // namespace verbscope
