// A source whose counters only increase. It reads them at each moment; the differences are the counts.
#pragma once

#include <array>

#include "counters/source.hpp"

namespace verbscope {

class SnapshotSource : public CounterSource {
 public:
  void read(Moment moment) override;

 protected:
  // Current values of all counters. Throws Error.
  virtual Sums snapshot() = 0;
  // The differences, for counters that exist at both ends.
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
