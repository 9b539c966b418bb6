// Histories for tests: written by hand, or of clients of a simulated register.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "systems/history/linearizable.hpp"

namespace verbscope {

inline HistoryEvent operation(OperationKind kind, std::uint64_t value, std::int64_t invoked,
                              std::optional<std::int64_t> completed) {
  static std::uint64_t number = 0;
  HistoryEvent event{
      .client = 1, .number = ++number, .kind = kind, .key = 1, .value = value, .invoked = Nanos(invoked)};
  if (completed) event.completed = Nanos(*completed);
  return event;
}
inline HistoryEvent put(std::uint64_t value, std::int64_t invoked, std::optional<std::int64_t> completed) {
  return operation(OperationKind::put, value, invoked, completed);
}
inline HistoryEvent get(std::uint64_t value, std::int64_t invoked, std::optional<std::int64_t> completed) {
  return operation(OperationKind::get, value, invoked, completed);
}

struct RegisterRun {
  std::uint64_t clients = 4, keys = 1, operations = 100;  // operations: of all clients
  double put_share = 0.5, unknown_share = 0;
  std::uint64_t values = 0;  // PUTs draw from this many values; 0: each PUT has its own
  std::int64_t begin = 0;    // ns
};

// A linearizable history: each operation takes effect on an atomic register at a random time between its invocation and
// its completion. A PUT without an answer takes effect later, or never.
inline std::vector<HistoryEvent> register_history(const RegisterRun& run, std::mt19937_64& random) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const auto chance = [&](double share) { return std::bernoulli_distribution(share)(random); };
  struct Effect {
    std::int64_t time;
    std::size_t event;
  };
  std::vector<HistoryEvent> events;
  std::vector<Effect> effects;
  std::vector<std::int64_t> free_at(run.clients, run.begin);
  static std::uint64_t next_value = 1'000'000;
  for (std::uint64_t i = 0; i < run.operations; ++i) {
    const std::uint64_t client = i % run.clients;
    HistoryEvent event{.client = client, .number = i};
    event.kind = chance(run.put_share) ? OperationKind::put : OperationKind::get;
    event.key = static_cast<std::uint64_t>(draw(1, static_cast<std::int64_t>(run.keys)));
    event.value =
        run.values == 0 ? ++next_value : static_cast<std::uint64_t>(draw(1, static_cast<std::int64_t>(run.values)));
    event.invoked = Nanos(free_at[client] + draw(1, 20));
    const bool answered = !chance(run.unknown_share);
    const std::int64_t effect = event.invoked.count() + draw(0, answered ? 50 : 500);
    if (answered) event.completed = Nanos(effect + draw(0, 50));
    free_at[client] = answered ? event.completed->count() : event.invoked.count() + 100;
    if (answered || chance(0.5)) effects.push_back({effect, events.size()});
    events.push_back(event);
  }
  std::ranges::stable_sort(effects, {}, &Effect::time);
  std::map<std::uint64_t, std::uint64_t> store;
  for (const Effect& each : effects) {
    HistoryEvent& event = events[each.event];
    std::uint64_t& value = store[event.key];
    event.kind == OperationKind::put ? value = event.value : event.value = value;
  }
  return events;
}

}  // namespace verbscope
