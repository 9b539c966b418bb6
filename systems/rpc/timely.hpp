// Timely: a sending rate from the round trips of packets (Mittal et al., SIGCOMM 2015), with the parameters of eRPC
// (Kalia et al., NSDI 2019, section 5.2; rates in bytes per second).
#pragma once

#include <algorithm>

#include "common/units.hpp"

namespace verbscope {

struct TimelyParameters {
  BytesPerSecond link{};      // highest rate, at which it starts
  double floor = 15e6;        // lowest rate
  double add = 5e6;           // step of additive increase
  double weight = 0.46;       // of the latest difference, in the moving average
  double decrease = 0.26;     // share of a multiplicative decrease
  Picos low{50'000'000};      // round trips below it raise the rate
  Picos high{1'000'000'000};  // round trips above it lower the rate
  Picos shortest{2'000'000};  // of a packet without queues; shorter samples are ignored
  int falls_to_hurry = 5;     // falling round trips in a row, after which the steps are five times as large
};

class Timely {
 public:
  explicit Timely(const TimelyParameters& parameters) : p_(&parameters), rate_(parameters.link.value) {}

  double rate() const { return rate_; }
  bool at_link_rate() const { return rate_ >= p_->link.value; }

  // A packet's round trip, known at `now`.
  void sample(Picos round_trip, Picos now) {
    if (round_trip < p_->shortest) return;
    const auto ps = [](Picos t) { return static_cast<double>(t.count()); };
    const double shortest = ps(p_->shortest);
    const double difference = last_ == Picos(0) ? 0 : ps(round_trip - previous_);
    const double d = last_ == Picos(0) ? 1 : std::min(1.0, ps(now - last_) / shortest);
    falls_ = difference < 0 ? falls_ + 1 : 0;
    previous_ = round_trip;
    last_ = now;
    average_ = (1 - p_->weight) * average_ + p_->weight * difference;
    const double gradient = average_ / shortest;
    const double old = rate_;
    double rate = old;
    if (round_trip < p_->low) {
      rate += p_->add * d;
    } else if (round_trip > p_->high) {
      rate *= 1 - p_->decrease * d * (1 - ps(p_->high) / ps(round_trip));
    } else if (gradient <= 0) {
      rate += (falls_ >= p_->falls_to_hurry ? 5 : 1) * p_->add * d;
    } else {
      rate *= 1 - p_->decrease * d * gradient;
    }
    rate_ = std::clamp(std::max(rate, old / 2), p_->floor, p_->link.value);
  }

 private:
  const TimelyParameters* p_;
  double rate_;
  double average_ = 0;  // of the differences between successive round trips, in ps
  Picos previous_{0};
  Picos last_{0};  // time of the last sample
  int falls_ = 0;  // round trips in a row, each shorter than the one before
};

}  // namespace verbscope
