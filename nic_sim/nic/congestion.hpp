// Congestion control of an adapter on Ethernet: DCQCN's notification point, which sends a CNP for marked packets, and
// its reaction point (wire/dcqcn.hpp), which slows a QP after a CNP. Without DCQCN, marks are only counted.
#pragma once

#include <cstdint>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class Congestion {
 public:
  // `node`: of the NIC.
  Congestion(Engine& engine, Fabric& fabric, PacketPool& packets, const Profile& profile, EthernetCounts& counts,
             std::uint32_t node);
  Congestion(const Congestion&) = delete;
  Congestion& operator=(const Congestion&) = delete;

  // A marked packet for `qp` has arrived.
  void on_marked(SimQp& qp, const Packet& packet);
  // A CNP for `qp` has arrived.
  void on_cnp(SimQp& qp);

  // Returns true if `qp` may send `packet` now: its rate allows it, and its port has room. Else schedules `again` with
  // the QP as argument, for when that may change. Always true on InfiniBand.
  bool may_send(SimQp& qp, const Packet& packet, Engine::Action again, void* object) {
    return !framing_.ethernet() || (has_room(qp, packet, again, object) &&
                                    (qp.pace.flow.rate() == 0 || take_turn(qp, packet.wire_bytes, again, object)));
  }

 private:
  bool has_room(SimQp& qp, const Packet& packet, Engine::Action again, void* object);
  bool take_turn(SimQp& qp, std::uint32_t bytes, Engine::Action again, void* object);

  Engine& engine_;
  Fabric& fabric_;
  PacketPool& packets_;
  bool reacts_;
  DcqcnParameters dcqcn_;
  Framing framing_;
  EthernetCounts& counts_;
  std::uint32_t node_;
};

}  // namespace verbscope::sim
