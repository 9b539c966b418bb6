// A source of counters that only ever rise: read at the turns, the differences are what it counted.
#pragma once

#include <array>

#include "counters/source.hpp"

namespace verbscope {

class SnapshotSource : public CounterSource {
 public:
  void read(Moment moment) override;

 protected:
  // The values of all counters now. Throws Error.
  virtual Sums snapshot() = 0;
  // Differences, for counters that were there at both ends.
  Counted counted() const;

 private:
  struct Snapshot {
    Picos time{0};  // the middle of the reading
    Sums values;
  };
  const Snapshot& at(Moment moment) const { return snapshots_[static_cast<std::size_t>(moment)]; }
  Columns differences(Moment begin, Moment end) const;

  std::array<Snapshot, kMoments> snapshots_;
};

}  // namespace verbscope
