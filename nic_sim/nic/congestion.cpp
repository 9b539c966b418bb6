#include "nic_sim/nic/congestion.hpp"

#include <algorithm>
#include <cmath>

#include "nic_sim/nic/events.hpp"

namespace verbscope::sim {
namespace {

constexpr std::uint8_t kPriorityOfCnps = 6;  // the usual one, above data
constexpr Bytes kCnpReserved{16};  // annex A17.9.3 of the InfiniBand Architecture Specification: behind the BTH

}  // namespace

Congestion::Congestion(Engine& engine, Fabric& fabric, PacketPool& packets, const Profile& profile,
                       EthernetCounts& counts, std::uint32_t node)
    : engine_(engine),
      fabric_(fabric),
      packets_(packets),
      reacts_(profile.nic.congestion_control == CongestionControl::dcqcn),
      dcqcn_(profile.nic.dcqcn),
      line_rate_(profile.wire.port_rate.value * profile.fabric.port_share),
      framing_(profile),
      counts_(counts),
      node_(node) {}

// Only QPs with one peer get CNPs: a UD QP has many.
void Congestion::on_marked(SimQp& qp, const Packet& packet) {
  ++counts_.np_ecn_marked_roce_packets;
  if (!reacts_ || !facts(qp.transport).connected || engine_.now() < qp.pace.next_cnp) return;
  qp.pace.next_cnp = engine_.now() + dcqcn_.cnp_interval;
  ++counts_.np_cnp_sent;
  Packet& cnp = packets_.take(0);
  cnp.kind = Packet::Kind::congestion_notification;
  cnp.transport = packet.transport;
  cnp.first = cnp.last = true;
  cnp.counted = cnp.completes = false;
  cnp.port = packet.port;
  cnp.priority = kPriorityOfCnps;
  cnp.source_node = node_;
  cnp.target_node = packet.source_node;
  cnp.source_qp = packet.target_qp;
  cnp.target_qp = packet.source_qp;
  cnp.wire_bytes = framing_.bytes(0, kCnpReserved, true);
  cnp.reads_left = 0;
  fabric_.send(cnp);
}

void Congestion::on_cnp(SimQp& qp) {
  ++counts_.rp_cnp_handled;
  if (!reacts_) return;
  Pace& pace = qp.pace;
  const Picos now = engine_.now();
  catch_up(pace, now);
  lower_alpha(pace, now);
  if (pace.rate == 0) pace.rate = line_rate_;
  pace.target = pace.rate;
  pace.rate = std::max(pace.rate * (1 - pace.alpha / 2), dcqcn_.min_rate.value);
  pace.alpha = (1 - dcqcn_.gain) * pace.alpha + dcqcn_.gain;
  pace.alpha_falls = now + dcqcn_.alpha_timer;
  pace.rises = now + dcqcn_.increase_timer;
  pace.bytes = 0;
  pace.by_timer = pace.by_bytes = 0;
}

bool Congestion::has_room(SimQp& qp, const Packet& packet, Engine::Action again, void* object) {
  const Picos from = fabric_.room_from(node_, packet.port, packet.priority);
  if (from <= engine_.now()) return true;
  engine_.schedule(from, again, object, as_argument(qp));
  return false;
}

bool Congestion::take_turn(SimQp& qp, std::uint32_t bytes, Engine::Action again, void* object) {
  Pace& pace = qp.pace;
  const Picos now = engine_.now();
  catch_up(pace, now);
  if (pace.rate == 0) return true;
  if (now < pace.next) {
    counts_.rate_limited_ps += static_cast<std::uint64_t>((pace.next - now).count());
    engine_.schedule(pace.next, again, object, as_argument(qp));
    return false;
  }
  pace.next = now + TransferTime(BytesPerSecond{pace.rate})(Bytes(bytes));
  pace.bytes += bytes;
  if (pace.bytes >= dcqcn_.increase_bytes.value) {
    pace.bytes = 0;
    ++pace.by_bytes;
    increase(pace);
  }
  return true;
}

// Applies the timer's rate increases up to `now`. A QP at line rate is no longer limited.
void Congestion::catch_up(Pace& pace, Picos now) const {
  for (; pace.rate != 0 && pace.rises <= now; pace.rises += dcqcn_.increase_timer) {
    ++pace.by_timer;
    increase(pace);
  }
}

void Congestion::increase(Pace& pace) const {
  const int more = std::max(pace.by_timer, pace.by_bytes), fewer = std::min(pace.by_timer, pace.by_bytes);
  if (fewer > dcqcn_.fast_recovery) {
    pace.target += dcqcn_.hyper.value * (fewer - dcqcn_.fast_recovery);
  } else if (more > dcqcn_.fast_recovery) {
    pace.target += dcqcn_.additive.value;
  }
  pace.target = std::min(pace.target, line_rate_);
  pace.rate = (pace.target + pace.rate) / 2;
  constexpr double kLineRateShare = 0.999;
  if (pace.rate >= kLineRateShare * line_rate_) pace.rate = 0;
}

void Congestion::lower_alpha(Pace& pace, Picos now) const {
  if (now < pace.alpha_falls) return;
  const auto turns = static_cast<double>((now - pace.alpha_falls) / dcqcn_.alpha_timer + 1);
  pace.alpha *= std::pow(1 - dcqcn_.gain, turns);
}

}  // namespace verbscope::sim
