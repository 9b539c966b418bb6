// What a unit does with a request packet: it is judged, costs its time, takes effect or is refused.
#pragma once

#include <cstdint>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/answers.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/receive_events.hpp"
#include "nic_sim/nic/recvs.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// The responder's judgement of a request before it does anything: its place in the order, its rights, the RECV that it
// needs.

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

// Does what a request asks for, or says why not: payload into memory or a RECV, atomics, completions, acknowledgements.
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

  // The packet is as expected: it takes effect; but the response to a READ is the unit's work, packet by packet. False:
  // an atomic that waits for its slot in front of its unit's line.
  bool take(SimQp& qp, Packet& packet);

  // `verdict`, which is neither take nor repeat, is said to the packet.
  void refuse(SimQp& qp, const Packet& packet, Verdict verdict);

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

// The work of a responder's unit on the request packet in front of its line: it has the QP's state and the addresses
// looked up, takes the time that the packet costs, and has it take effect, or be refused.
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

  // A unit has taken the QP, with `packet` in front.
  void take_up(SimQp& qp, Packet& packet);
  // The state of the QP is there, or the RECV or the earlier atomic that the packet in front waited for: it is judged
  // and costs its time, unless it must wait for something else.
  void begin(SimQp& qp, Packet& packet);
  // What was missing for the packet in front, the QP's state or translations, was read: it begins.
  void read_done(SimQp& qp);
  // The unit has worked on the packet in front: it takes effect, or is refused. Whether the unit is idle now.
  bool has_worked(SimQp& qp);

 private:
  void take_answer(SimQp& qp, const Packet& answer);
  std::uint64_t missing_translations(SimQp& qp, const Packet& packet);
  Picos further_lines(std::uint64_t payload) const;
  Picos service_time(const SimQp& qp, const Packet& packet, Verdict verdict) const;
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
