// The sending rate of a session: by Timely, from the round trips of its packets, or by DCQCN, from the marks that its
// server returns. DCQCN's reaction point is wire/dcqcn.hpp; the server takes the place of the notification point, and
// the session reacts to at most one mark per interval.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "systems/rpc/rpc_options.hpp"
#include "systems/rpc/timely.hpp"
#include "wire/dcqcn.hpp"

namespace verbscope {

class Dcqcn {
 public:
  explicit Dcqcn(const DcqcnParameters& parameters) : p_(&parameters) {}

  double rate() const { return at_link_rate() ? p_->line.value : flow_.rate(); }
  bool at_link_rate() const { return flow_.rate() == 0; }

  // An answer has arrived at `now`; the rate limiter has packets until `limited`, which leave at earlier rates.
  void sample(bool marked, Picos limited, Picos now) {
    flow_.catch_up(*p_, now);
    if (!marked || now < next_decrease_) return;
    flow_.notify(*p_, now);
    next_decrease_ = std::max(now + p_->cnp_interval, limited);
  }
  // A packet of `bytes` bytes is sent.
  void send(std::uint32_t bytes, Picos now) {
    flow_.catch_up(*p_, now);
    if (!at_link_rate()) flow_.count(*p_, bytes);
  }

 private:
  const DcqcnParameters* p_;
  DcqcnFlow flow_;
  Picos next_decrease_{0};
};

class RateControl {
 public:
  // `options` must outlive it.
  explicit RateControl(const RpcOptions& options) : options_(&options), policy_(make(options)) {}

  bool at_link_rate() const {
    return std::visit([](const auto& policy) { return policy.at_link_rate(); }, policy_);
  }
  double rate() const {
    return std::visit([](const auto& policy) { return policy.rate(); }, policy_);
  }

  // An answer without a mark after at most this round trip leaves the session at link rate, so that sample() may be
  // bypassed (eRPC, NSDI 2019, section 5.2.2).
  Picos steady_below() const {
    if (!at_link_rate()) return Picos::min();
    return std::holds_alternative<Timely>(policy_) ? options_->timely.low : Picos::max();
  }

  // The answer to a packet has arrived at `now`. `limited`: when the last packet leaves that the rate limiter has.
  void sample(Picos round_trip, bool marked, Picos limited, Picos now) {
    if (Timely* const timely = std::get_if<Timely>(&policy_)) return timely->sample(round_trip, now);
    std::get<Dcqcn>(policy_).sample(marked, limited, now);
  }

  // Returns the rate at which a packet of `bytes` bytes may be sent, in bytes per second.
  double send(std::uint32_t bytes, Picos now) {
    if (Dcqcn* const dcqcn = std::get_if<Dcqcn>(&policy_)) dcqcn->send(bytes, now);
    return rate();
  }

 private:
  using Policy = std::variant<Timely, Dcqcn>;
  static Policy make(const RpcOptions& options) {
    if (options.control == RpcControl::dcqcn) return Dcqcn(options.dcqcn);
    return Timely(options.timely);
  }

  const RpcOptions* options_;
  Policy policy_;
};

}  // namespace verbscope
