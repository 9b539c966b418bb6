// The responder: the half of a NIC that receives. Its parts use only what their constructors get, and schedule
// ReceiveEvents, which Responder handles. Arrived packets wait in line for a unit. Requests take effect here: a SEND
// consumes a RECV, a WRITE writes memory, READs and atomics are answered; RC acknowledges. Answers go to the requester.
#pragma once

#include <vector>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/answers.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/recvs.hpp"
#include "nic_sim/nic/requester.hpp"
#include "nic_sim/nic/requests.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class Responder {
 public:
  // The events of the responder at an address, which may not be constructed yet.
  static ReceiveEvents events_of(void* responder);

  // `units` and `fetcher` schedule `events` too. `requester` gets the answers. `node`: number of the NIC's node.
  Responder(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            const QpTable& qps, const ReceiveEvents& events, QpContexts& contexts, HostMemory& memory,
            Congestion& congestion, PayloadWriter& payload, ReceivingUnits& units, RecvFetcher& fetcher,
            RecvConsumer& recvs, Requester& requester, std::uint32_t node, std::uint64_t seed)
      : qps_(qps),
        units_(units),
        fetcher_(fetcher),
        requester_(requester),
        answers_(engine, bus, fabric, pool, profile, counts, qps, requester.completer(), memory, congestion, node,
                 seed),
        atomics_(engine, bus, pool, profile.nic, counts, qps, memory, payload, units, answers_, events),
        executor_(profile.nic, counts, requester.completer(), payload, recvs, answers_, atomics_),
        processor_(engine, bus, profile.nic, counts, contexts, memory, events, units, executor_, answers_) {}
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // A packet has arrived.
  void receive(Packet& packet);

  // Time for which each atomic slot has been held so far.
  std::vector<Picos> atomic_slots_held() const { return atomics_.times_held(); }

 private:
  // The handlers of ReceiveEvents, named after them.
  static void state_is_near(void* responder, std::uint64_t packet);
  static void unit_is_free(void* responder, std::uint64_t unit);
  static void read_done(void* responder, std::uint64_t qp);
  static void answer_taken(void* responder, std::uint64_t qp);
  static void unit_has_worked(void* responder, std::uint64_t qp);
  static void recvs_fetched(void* responder, std::uint64_t word);
  static void shared_recvs_fetched(void* responder, std::uint64_t srq_and_count);
  static void atomic_done(void* responder, std::uint64_t answer);
  void serve() {
    if (units_.can_serve()) serve_line();
  }
  void serve_line();
  // Resumes work on the packet in front of a QP.
  auto go_on() {
    return [this](SimQp& qp) { processor_.begin(qp, units_.of(qp).front()); };
  }

  const QpTable& qps_;
  ReceivingUnits& units_;
  RecvFetcher& fetcher_;
  Requester& requester_;
  AnswerSender answers_;
  AtomicUnit atomics_;
  RequestExecutor executor_;
  RequestProcessor processor_;
};

}  // namespace verbscope::sim
