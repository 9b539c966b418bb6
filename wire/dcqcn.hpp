// DCQCN's reaction point: the rate of a flow whose receiver reports marked packets (Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015, section 3 and its parameters). Adapters use it for a QP, and programs
// that pace their own datagrams.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "common/units.hpp"

namespace verbscope {

struct DcqcnParameters {
  BytesPerSecond line{};                                // highest rate, at which a flow starts
  Picos cnp_interval{std::chrono::microseconds(50)};    // between two notifications of a flow
  double gain = 1.0 / 256;                              // g of the estimate alpha
  Picos alpha_timer{std::chrono::microseconds(55)};     // alpha falls after this time without a notification
  Picos increase_timer{std::chrono::microseconds(55)};  // timer of rate increases
  Bytes increase_bytes{10'000'000};                     // byte counter of rate increases
  int fast_recovery = 5;                                // F: increases of either kind before the target rate rises
  BytesPerSecond additive{40e6 / 8};                    // R_AI
  BytesPerSecond hyper{400e6 / 8};                      // R_HAI
  BytesPerSecond min_rate{10e6 / 8};                    // minimum rate of a flow
};

// The state of one flow. The paper calls rate, target and alpha R_C, R_T and alpha.
class DcqcnFlow {
 public:
  double rate() const { return rate_; }      // bytes per second; 0: not limited, at line rate
  double target() const { return target_; }  // bytes per second
  double alpha() const { return alpha_; }

  // A notification has arrived: packets of the flow were marked.
  void notify(const DcqcnParameters& p, Picos now) {
    catch_up(p, now);
    lower_alpha(p, now);
    if (rate_ == 0) rate_ = p.line.value;
    target_ = rate_;
    rate_ = std::max(rate_ * (1 - alpha_ / 2), p.min_rate.value);
    alpha_ = (1 - p.gain) * alpha_ + p.gain;
    alpha_falls_ = now + p.alpha_timer;
    rises_ = now + p.increase_timer;
    bytes_ = 0;
    by_timer_ = by_bytes_ = 0;
  }

  // Applies the timer's rate increases up to `now`. A flow at line rate is no longer limited.
  void catch_up(const DcqcnParameters& p, Picos now) {
    for (; rate_ != 0 && rises_ <= now; rises_ += p.increase_timer) {
      ++by_timer_;
      increase(p);
    }
  }

  // Counts bytes that are sent.
  void count(const DcqcnParameters& p, std::uint32_t bytes) {
    bytes_ += bytes;
    if (bytes_ < p.increase_bytes.value) return;
    bytes_ = 0;
    ++by_bytes_;
    increase(p);
  }

 private:
  void increase(const DcqcnParameters& p) {
    const int more = std::max(by_timer_, by_bytes_), fewer = std::min(by_timer_, by_bytes_);
    if (fewer > p.fast_recovery) {
      target_ += p.hyper.value * (fewer - p.fast_recovery);
    } else if (more > p.fast_recovery) {
      target_ += p.additive.value;
    }
    target_ = std::min(target_, p.line.value);
    rate_ = (target_ + rate_) / 2;
    constexpr double kLineRateShare = 0.999;
    if (rate_ >= kLineRateShare * p.line.value) rate_ = 0;
  }

  void lower_alpha(const DcqcnParameters& p, Picos now) {
    if (now < alpha_falls_) return;
    const auto turns = static_cast<double>((now - alpha_falls_) / p.alpha_timer + 1);
    alpha_ *= std::pow(1 - p.gain, turns);
  }

  double rate_ = 0;
  double target_ = 0;
  double alpha_ = 1;
  Picos alpha_falls_{Picos::max()};  // next decrease of alpha, if no notification arrives
  Picos rises_{0};                   // next rate increase by the timer
  std::uint64_t bytes_ = 0;          // sent since the last rate increase by the byte counter
  int by_timer_ = 0, by_bytes_ = 0;  // rate increases since the last notification
};

}  // namespace verbscope
