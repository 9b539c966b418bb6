// The half of a NIC that receives: request packets wait in line for the unit of their QP, take a RECV, write payload
// and CQE, and are acknowledged on reliable transports.
#pragma once

#include <vector>

#include "nic_sim/engine.hpp"
#include "nic_sim/objects.hpp"

namespace verbscope::sim {

class Responder {
 public:
  explicit Responder(Nic& nic);

  // Binds a new QP to a unit, one after the other.
  void bind(SimQp& qp);

  // A request packet has arrived.
  void receive(Packet& packet);

  // RECVs were posted: the NIC fetches them in aligned groups, ahead of use.
  void prefetch(SimQp& qp);

  // Completes all RECVs as flushed.
  void flush(SimQp& qp);
  // Drops what waits for the QP before it is destroyed or reset.
  void forget(SimQp& qp);

 private:
  struct Unit {
    PacketQueue line;
    bool busy = false;
    bool waits_for_recv = false;
  };
  // What is to be done with a packet.
  enum class Verdict { take, drop, duplicate, gap, no_recv, wait_for_recv };

  static void context_read(void* qp, std::uint64_t);
  static void service_done(void* qp, std::uint64_t packet);
  static void unit_free(void* qp, std::uint64_t);
  static void recvs_fetched(void* qp, std::uint64_t count);

  Unit& unit_of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.responder.unit)]; }
  void serve_next(Unit& unit);
  void begin_service(SimQp& qp, Packet& packet);
  Verdict judge(SimQp& qp, const Packet& packet);
  void take(SimQp& qp, Packet& packet);
  ibv_wc_status deliver(SimQp& qp, const Packet& packet);
  void finish_message(SimQp& qp, const Packet& packet, ibv_wc_status status);
  void refuse(SimQp& qp, const Packet& packet, Verdict verdict);
  void acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence);
  void done_with(SimQp& qp, Packet& packet);

  Nic& nic_;
  std::vector<Unit> units_;
  int next_unit_ = 0;
};

}  // namespace verbscope::sim
