// A unit's work on a request packet: validation, service time, and execution or refusal.
#pragma once

#include <cstdint>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/answers.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/recvs.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// The result of validating a request packet: its sequence number, its access rights, and the RECV that it needs.
enum class RequestCheck {
  take,           // execute it
  repeat,         // a READ that was answered before: answer it again
  drop,           // ignore it
  duplicate,      // acknowledge it again; answer an atomic with the kept result
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
  RequestExecutor(const NicProfile& profile, NicCounts& counts, SendCompleter& completer, PayloadWriter& payload,
                  RecvConsumer& recvs, AnswerSender& answers, AtomicUnit& atomics)
      : profile_(profile),
        counts_(counts),
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
  RequestProcessor(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, QpContexts& contexts,
                   HostMemory& memory, const ReceiveEvents& events, ReceivingUnits& units, RequestExecutor& executor,
                   AnswerSender& answers)
      : engine_(engine),
        bus_(bus),
        profile_(profile),
        counts_(counts),
        contexts_(contexts),
        memory_(memory),
        events_(events),
        units_(units),
        executor_(executor),
        answers_(answers) {}
  RequestProcessor(const RequestProcessor&) = delete;
  RequestProcessor& operator=(const RequestProcessor&) = delete;

  // Starts work on the QP, whose first packet is `packet`.
  void take_up(SimQp& qp, Packet& packet);
  // Continues when the context, the RECV or the earlier atomic that the packet needs is there: validates the packet and
  // starts its service time, unless it must wait for something else.
  void begin(SimQp& qp, Packet& packet);
  // The context or translations that the first packet lacked were read: continues.
  void read_done(SimQp& qp);
  // The service time of the first packet is over: executes or refuses it. Returns true if the unit is idle now.
  bool has_worked(SimQp& qp);

 private:
  void take_answer(SimQp& qp, const Packet& answer);
  std::uint64_t missing_translations(SimQp& qp, const Packet& packet);
  Picos further_lines(std::uint64_t payload) const;
  Picos service_time(const SimQp& qp, const Packet& packet, RequestCheck check) const;
  void work(SimQp& qp, Picos time);
  bool execute(ReceivingUnit& unit, SimQp& qp, Packet& packet);
  bool respond(ReceivingUnit& unit, SimQp& qp, Packet& packet);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  NicCounts& counts_;
  QpContexts& contexts_;
  HostMemory& memory_;
  const ReceiveEvents& events_;
  ReceivingUnits& units_;
  RequestExecutor& executor_;
  AnswerSender& answers_;
};

}  // namespace verbscope::sim
