// The responder: the half of a NIC that receives. Its parts use only what their constructors get, and schedule
// ReceiveEvents, which Responder handles. Arrived packets wait in line for a unit. Requests take effect here: a SEND
// consumes a RECV, a WRITE writes memory, READs and atomics are answered; RC acknowledges. Answers go to the requester.
#pragma once

#include <cstdint>
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
#include "nic_sim/nic/recvs.hpp"
#include "nic_sim/nic/requester.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// The result of validating a request packet: its sequence number, its access rights, and the RECV that it needs.
enum class RequestCheck {
  take,           // execute it
  repeat,         // a READ that was answered before: answer it again
  drop,           // ignore it
  duplicate,      // acknowledge it again; answer an atomic with its stored result
  gap,            // a packet before it is missing
  invalid,        // the QP does not allow it
  no_access,      // the memory region does not allow it
  no_recv,        // it needs a RECV, and none is posted
  wait_for_recv,  // it needs a RECV that is posted but not fetched yet
};

// True if the packet needs a new RECV. On UC, the RECV of a message that lost packets serves the next message.
bool takes_recv(const SimQp& qp, const Packet& packet);

// Validates a request packet of `qp`, without effect.
RequestCheck check_request(const SimQp& qp, const Packet& packet, const HostMemory& memory);

// Executes or refuses requests: payload to memory or a RECV, atomics, completions, ACKs and NAKs.
class RequestExecutor {
 public:
  RequestExecutor(const NicProfile& profile, NicCounts& counts, HostMemory& memory, SendCompleter& completer,
                  PayloadWriter& payload, RecvConsumer& recvs, AnswerSender& answers, AtomicUnit& atomics)
      : profile_(profile),
        counts_(counts),
        memory_(memory),
        completer_(completer),
        payload_(payload),
        recvs_(recvs),
        answers_(answers),
        atomics_(atomics) {}
  RequestExecutor(const RequestExecutor&) = delete;
  RequestExecutor& operator=(const RequestExecutor&) = delete;

  // Executes a valid request. The caller makes the response to a READ, packet by packet. Returns false for an atomic
  // that waits for its slot, in front of its unit.
  bool take(SimQp& qp, Packet& packet);

  // Refuses a request for the reason `check`, which is neither take nor repeat.
  void refuse(SimQp& qp, const Packet& packet, RequestCheck check);

 private:
  void take_payload(SimQp& qp, Packet& packet);
  void finish_message(SimQp& qp, const Packet& packet);
  void fail_message(SimQp& qp, const Packet& packet, ibv_wc_status status);

  const NicProfile& profile_;
  NicCounts& counts_;
  HostMemory& memory_;
  SendCompleter& completer_;
  PayloadWriter& payload_;
  RecvConsumer& recvs_;
  AnswerSender& answers_;
  AtomicUnit& atomics_;
};

// A responder unit's work on the first packet of a QP: it looks up the QP's context and the addresses, spends the
// service time, and has the request executed or refused.
class RequestProcessor {
 public:
  RequestProcessor(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, const SrqTable& srqs,
                   QpContexts& contexts, HostMemory& memory, const ReceiveEvents& events, ReceivingUnits& units,
                   RequestExecutor& executor, AnswerSender& answers)
      : engine_(engine),
        bus_(bus),
        profile_(profile),
        counts_(counts),
        srqs_(srqs),
        contexts_(contexts),
        memory_(memory),
        events_(events),
        units_(units),
        executor_(executor),
        answers_(answers) {}
  RequestProcessor(const RequestProcessor&) = delete;
  RequestProcessor& operator=(const RequestProcessor&) = delete;

  // Starts work on the QP, whose first packet is `packet`.
  void start(SimQp& qp, Packet& packet);
  // Continues when the context, the RECV or the earlier atomic that the packet needs is there: validates the packet and
  // starts its service time, unless it must wait for something else.
  void begin(SimQp& qp, Packet& packet);
  // The context or translations that the first packet lacked were read: continues.
  void read_done(SimQp& qp);
  // The service time of the first packet is over: executes or refuses it. Returns true if a unit is idle now.
  bool service_done(SimQp& qp);

 private:
  void take_answer(SimQp& qp, const Packet& answer);
  RequestCheck check(SimQp& qp, const Packet& packet) const {
    if (qp.transport == Transport::xrc) [[unlikely]]
      return check_named_queue(qp, packet);
    return check_request(qp, packet, memory_);
  }
  [[gnu::noinline]] RequestCheck check_named_queue(SimQp& qp, const Packet& packet) const;
  std::uint64_t missing_translations(SimQp& qp, const Packet& packet);
  PacketWork move_payload(Picos alone, std::uint64_t bytes) const;
  PacketWork service(const SimQp& qp, const Packet& packet, RequestCheck check) const;
  void work(SimQp& qp, const PacketWork& work);
  bool execute(ReceivingUnit& unit, SimQp& qp, Packet& packet);
  bool respond(ReceivingUnit& unit, SimQp& qp, Packet& packet);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const SrqTable& srqs_;
  QpContexts& contexts_;
  HostMemory& memory_;
  const ReceiveEvents& events_;
  ReceivingUnits& units_;
  RequestExecutor& executor_;
  AnswerSender& answers_;
};

class Responder {
 public:
  // The events of the responder at an address, which may not be constructed yet.
  static ReceiveEvents events_of(void* responder);

  // `units` and `fetcher` schedule `events` too. `requester` gets the answers. `node`: number of the NIC's node.
  Responder(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            const QpTable& qps, const SrqTable& srqs, const ReceiveEvents& events, QpContexts& contexts,
            HostMemory& memory, Congestion& congestion, PayloadWriter& payload, ReceivingUnits& units,
            RecvFetcher& fetcher, RecvConsumer& recvs, Requester& requester, std::uint32_t node, std::uint64_t seed)
      : qps_(qps),
        units_(units),
        fetcher_(fetcher),
        requester_(requester),
        answers_(engine, bus, fabric, pool, profile, counts, qps, requester.completer(), memory, congestion, node,
                 seed),
        atomics_(engine, bus, pool, profile.nic, counts, qps, payload, units, answers_, events),
        executor_(profile.nic, counts, memory, requester.completer(), payload, recvs, answers_, atomics_),
        processor_(engine, bus, profile.nic, counts, srqs, contexts, memory, events, units, executor_, answers_) {}
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // A packet has arrived.
  void receive(Packet& packet);

  // Time for which each atomic slot has been held so far.
  std::vector<Picos> atomic_slots_held() const { return atomics_.times_held(); }

 private:
  // The handlers of ReceiveEvents, named after them.
  static void context_near(void* responder, std::uint64_t packet);
  static void unit_free(void* responder, std::uint64_t unit);
  static void read_done(void* responder, std::uint64_t qp);
  static void answer_processed(void* responder, std::uint64_t qp);
  static void service_done(void* responder, std::uint64_t qp);
  static void recvs_fetched(void* responder, std::uint64_t word);
  static void shared_recvs_fetched(void* responder, std::uint64_t srq_and_count);
  static void atomic_done(void* responder, std::uint64_t answer);
  void serve() {
    if (units_.can_serve()) serve_line();
  }
  void serve_line();
  // Resumes work on the packet in front of a QP.
  auto resume_work() {
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
