// What parts of a NIC ask of those that are built on them, through the NIC as a whole: these four things, and no more.
#pragma once

#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

class Nic;

// Its functions are defined where the NIC is put together (nic.cpp), so that they cost no more than a call.
class WholeNic {
 public:
  explicit WholeNic(Nic& nic) : nic_(nic) {}
  WholeNic(const WholeNic&) = delete;
  WholeNic& operator=(const WholeNic&) = delete;

  // Puts the QP into the error state: everything outstanding completes as flushed.
  void fail_qp(SimQp& qp) const;
  // A unit has taken in an acknowledgement of either kind or a response for the requester of `qp`.
  void take_answer(SimQp& qp, Packet& answer) const;
  // A unit of the responder has taken the QP, or what the packet in front waited for has come: begins, or goes on.
  void take_up_packet(SimQp& qp, Packet& packet) const;
  void go_on(SimQp& qp, Packet& packet) const;

 private:
  Nic& nic_;
};

}  // namespace verbscope::sim
