#include "nic_sim/nic/congestion.hpp"

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
      framing_(profile),
      counts_(counts),
      node_(node) {
  dcqcn_.line = BytesPerSecond{profile.wire.port_rate.value * profile.fabric.port_share};
}

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
  cnp.wire_bytes = framing_.bytes(0, kCnpReserved, qp.global);
  cnp.reads_left = 0;
  fabric_.send(cnp);
}

void Congestion::on_cnp(SimQp& qp) {
  ++counts_.rp_cnp_handled;
  if (!reacts_) return;
  qp.pace.flow.notify(dcqcn_, engine_.now());
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
  pace.flow.catch_up(dcqcn_, now);
  if (pace.flow.rate() == 0) return true;
  if (now < pace.next) {
    counts_.rate_limited_ps += static_cast<std::uint64_t>((pace.next - now).count());
    engine_.schedule(pace.next, again, object, as_argument(qp));
    return false;
  }
  pace.next = now + TransferTime(BytesPerSecond{pace.flow.rate()})(Bytes(bytes));
  pace.flow.count(dcqcn_, bytes);
  return true;
}

}  // namespace verbscope::sim
