#include "microbench/run/steadiness.hpp"

#include <algorithm>
#include <cmath>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {

void Steadiness::begin(Picos now) {
  begin_ = now;
  ++windows_;
}

bool Steadiness::halves_agree() const {
  const double larger = std::max(rates_.first_half_mops, rates_.second_half_mops);
  return std::abs(rates_.first_half_mops - rates_.second_half_mops) <= schedule_.steady_within * larger;
}

bool Steadiness::goes_on(const WindowRates& rates, std::optional<double> counted_mops, bool settled, Picos now) {
  rates_ = rates;
  if (schedule_.threads_end_it) return false;
  const bool counters_agree = !counted_mops || std::abs(*counted_mops - rates.mops) <= kCountersAgree * *counted_mops;
  agreed_ = (agreed_ || halves_agree()) && counters_agree;
  if (agreed_ && settled) return false;
  // An eighth of the time that is left is for the completions that bound the window.
  const Picos left = (schedule_.longest - now) / 8 * 7;
  if (left < duration_) return false;
  duration_ = std::min(2 * duration_, left);
  return true;
}

std::string Steadiness::failure(const std::string& besides) const {
  if (schedule_.threads_end_it) return "";
  const double longest_s = to_seconds(schedule_.longest);
  if (gave_up_) {
    return fmt::format(
        "no rate within --longest {:g} s: a window needs three completions of each QP, each of --cq_mod "
        "operations{}",
        longest_s, besides);
  }
  if (agreed_ || halves_agree()) return "";
  return fmt::format(
      "the rate was not steady within --longest {:g} s: {} Mops in the first half of the last window, "
      "{} in the second{}",
      longest_s, with_digits(rates_.first_half_mops, 3), with_digits(rates_.second_half_mops, 3), besides);
}

SteadyReport Steadiness::report() const {
  return {.windows = windows_,
          .before_s = to_seconds(begin_),
          .first_half_mops = rates_.first_half_mops,
          .second_half_mops = rates_.second_half_mops};
}

}  // namespace verbscope
