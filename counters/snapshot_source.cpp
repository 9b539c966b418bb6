#include "counters/snapshot_source.hpp"

#include <limits>

#include "common/clock.hpp"

namespace verbscope {

void SnapshotSource::read(Moment moment) {
  const Picos before = TscClock::now();
  Sums values = snapshot();
  const Picos after = TscClock::now();
  snapshots_[static_cast<std::size_t>(moment)] = {before + (after - before) / 2, std::move(values)};
}

Columns SnapshotSource::differences(Moment begin, Moment end) const {
  Columns differences;
  const Sums& before = at(begin).values;
  for (const auto& [name, value] : at(end).values) {
    const auto found = before.find(name);
    if (found == before.end()) continue;
    differences[name] =
        value >= found->second ? static_cast<double>(value - found->second) : std::numeric_limits<double>::quiet_NaN();
  }
  return differences;
}

Counted SnapshotSource::counted() const {
  const auto seconds = [this](Moment begin, Moment end) { return to_seconds(at(end).time - at(begin).time); };
  Counted counted{.window_s = seconds(Moment::window_begin, Moment::window_end),
                  .raw = differences(Moment::window_begin, Moment::window_end),
                  .background_s = seconds(Moment::background_begin, Moment::background_end),
                  .background_per_s = {}};
  if (counted.background_s <= 0) return counted;
  for (const auto& [name, count] : differences(Moment::background_begin, Moment::background_end)) {
    counted.background_per_s[name] = count / counted.background_s;
  }
  return counted;
}

}  // namespace verbscope
