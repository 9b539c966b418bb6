// Whether the rate of a point is steady: the two halves of its window agree, and so does what the adapters counted,
// where they count the operations; and their caches have settled, where that is known and there is the time. Otherwise
// another window follows, twice as long, with all before it as its warm-up, until the time that a point may take is
// over.
#pragma once

#include <optional>
#include <string>

#include "microbench/bench/plan.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// The rate that threads counted and that of the adapters' counters may differ by this share.
inline constexpr double kCountersAgree = 0.01;
// Where --iters end the window, which may be short.
inline constexpr double kCountersAgreeByCount = 0.15;

class Steadiness {
 public:
  explicit Steadiness(const Schedule& schedule) : schedule_(schedule), duration_(schedule.duration) {}

  // Times are since the threads have started. A window begins.
  void begin(Picos now);
  // The length of that window.
  Picos duration() const { return duration_; }
  // Whether there is no time left to wait for completions.
  bool late(Picos now) const { return now >= schedule_.longest; }
  // It is late, and completions that bound the window are missing: there is no rate.
  void give_up() { gave_up_ = true; }
  bool gave_up() const { return gave_up_; }

  // The window has ended, with `rates`, and `counted_mops` where adapters count the operations; `settled`: their caches
  // will not miss more or less often than in it. Whether another follows.
  bool goes_on(const WindowRates& rates, std::optional<double> counted_mops, bool settled, Picos now);

  // After the last window: one line about a rate that never was steady; empty when it was. `besides` is another reason
  // for which completions may have been missing, or empty.
  std::string failure(const std::string& besides) const;
  SteadyReport report() const;

 private:
  bool halves_agree() const;

  Schedule schedule_;
  Picos duration_;
  Picos begin_{0};
  std::uint64_t windows_ = 0;
  WindowRates rates_;
  bool agreed_ = false;  // of some window the halves, and the counters since: what follows waits for the caches alone
  bool gave_up_ = false;
};

}  // namespace verbscope
