// Congestion control of an adapter on Ethernet. It tells the sender of packets that came with a mark, and slows its own
// QPs of which others tell it: DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015,
// section 3), notification point and reaction point. Without it, marks are only counted.
#pragma once

#include <cstdint>

#include "nic_sim/link/framing.hpp"
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

  // A packet for `qp` has come with a mark.
  void marked(SimQp& qp, const Packet& packet);
  // The peer of `qp` tells that packets of it were marked.
  void notified(SimQp& qp);

  // Whether `qp` may send `packet` now: its rate allows it, and its port has room. Else `again` of `object` happens,
  // with the QP, when it may be so. InfiniBand's QPs always may.
  bool may_send(SimQp& qp, const Packet& packet, Engine::Action again, void* object) {
    return !framing_.ethernet() || (has_room(qp, packet, again, object) &&
                                    (qp.pace.rate == 0 || take_turn(qp, packet.wire_bytes, again, object)));
  }

 private:
  bool has_room(SimQp& qp, const Packet& packet, Engine::Action again, void* object);
  bool take_turn(SimQp& qp, std::uint32_t bytes, Engine::Action again, void* object);
  void catch_up(Pace& pace, Picos now) const;
  void increase(Pace& pace) const;
  void lower_alpha(Pace& pace, Picos now) const;

  Engine& engine_;
  Fabric& fabric_;
  PacketPool& packets_;
  bool reacts_;
  DcqcnProfile dcqcn_;
  double line_;  // bytes a second
  Framing framing_;
  EthernetCounts& counts_;
  std::uint32_t node_;
};

}  // namespace verbscope::sim
