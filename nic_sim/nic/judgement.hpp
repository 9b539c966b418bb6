// The responder's judgement of a request before it does anything: its place in the order, its rights, the RECV that it
// needs.
#pragma once

#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

// A verdict says what is to be done with a request packet.
enum class Verdict {
  take,
  repeat,         // a READ that was answered before
  drop,           // without a word
  duplicate,      // acknowledged again; an atomic gets the result that was kept
  gap,            // a packet before it is missing
  invalid,        // the QP does not allow it
  no_access,      // the region does not allow it
  no_recv,        // none is posted
  wait_for_recv,  // one is posted and not fetched yet
};

// Whether the packet begins to use a RECV. One whose message broke off (UC) serves the next.
bool takes_recv(const SimQp& qp, const Packet& packet);

// Yields what the transport, the region and the receive queue say to a packet of `qp`.
Verdict judge(const SimQp& qp, const Packet& packet, const HostMemory& memory);

}  // namespace verbscope::sim
