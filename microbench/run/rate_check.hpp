// Checks of the rate of a point. While it runs: the rate is steady, or another interval follows. Afterwards: it is the
// rate that the adapters counted, and no more than the wire and the model allow.
#pragma once

#include <optional>
#include <string>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// Largest accepted difference between the rate of the threads and that of the adapters' counters, as a share.
inline constexpr double kCountersAgree = 0.01;
// The same if --iters end the interval, which may be short.
inline constexpr double kCountersAgreeByCount = 0.15;

// Decides whether an interval is measured again, twice as long, with all time before it as its warm-up. The rate is
// steady if the two halves of the interval agree, and the rate agrees with the adapters' counters if these count the
// operations. The adapters' caches should have settled too, if that is known and time is left.
class Steadiness {
 public:
  explicit Steadiness(const Schedule& schedule) : schedule_(schedule), duration_(schedule.duration) {}

  // Times count from the start of the threads. An interval begins.
  void begin(Picos now);
  // The length of that interval.
  Picos duration() const { return duration_; }
  // True if no time is left to wait for completions.
  bool late(Picos now) const { return now >= schedule_.longest; }
  // No time is left and completions that bound the interval are missing: there is no rate.
  void give_up() { gave_up_ = true; }
  bool gave_up() const { return gave_up_; }

  // After an interval with `rates`. `counted_mops`: by the adapters, if they count the operations. `settled`: the rate
  // of misses of their caches will not change. Returns true if another interval follows.
  bool goes_on(const IntervalRates& rates, std::optional<double> counted_mops, bool settled, Picos now);

  // After the last interval: one line about a rate that was never steady, or empty. `besides`: another reason for
  // missing completions, or empty.
  std::string failure(const std::string& besides) const;
  SteadyReport report() const;

 private:
  bool halves_agree() const;

  Schedule schedule_;
  Picos duration_;
  Picos begin_{0};
  std::uint64_t intervals_ = 0;
  IntervalRates rates_;
  bool agreed_ = false;  // the halves of some interval agreed, and the counters since: only the caches are unsettled
  bool gave_up_ = false;
};

// After the run, with result and counters in place. `counted`: the counter of the adapters that counts the operations;
// its rate is added to the result as `adapter_mops`. Sets the failure, if it is empty, if the two rates differ by more
// than 1 %, or 15 % with --iters of operations that are `of_payloads`. If threads end the interval in another way, the
// adapters must have counted at least the operations.
void check_against_counters(const std::optional<OperationCount>& counted, const Schedule& schedule, bool of_payloads,
                            Outcome& outcome);

// The same for a server on a host, by the packets of up to `mtu` bytes that the kernel counts at its ports. It applies
// to one-way operations over UD or UC on ports without other traffic.
void check_against_ports(const Plan& plan, std::uint32_t mtu, Outcome& outcome);

// Sets the failure, if it is empty, if the rate is above the bound of the model of a simulated machine. `bounded`: the
// key of that rate in the result.
void check_against_bounds(const std::string& bounded, Outcome& outcome);

}  // namespace verbscope
