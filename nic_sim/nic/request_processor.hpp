// The work of a responder's unit on the request packet in front of its line: it has the QP's state and the addresses
// looked up, takes the time that the packet costs, and has it take effect, or be refused.
#pragma once

#include <cstdint>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/answer_sender.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/judgement.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/receiving_units.hpp"
#include "nic_sim/nic/request_executor.hpp"
#include "nic_sim/nic/whole_nic.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class RequestProcessor {
 public:
  RequestProcessor(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, QpContexts& contexts,
                   HostMemory& memory, const WholeNic& whole, ReceivingUnits& units, RequestExecutor& executor,
                   AnswerSender& answers)
      : engine_(engine),
        bus_(bus),
        profile_(profile),
        counts_(counts),
        contexts_(contexts),
        memory_(memory),
        whole_(whole),
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

 private:
  static void read_done(void* processor, std::uint64_t qp);
  void take_answer(SimQp& qp, const Packet& answer);
  static void answer_taken(void* processor, std::uint64_t qp);
  static void time_is_over(void* processor, std::uint64_t qp);
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
  const WholeNic& whole_;
  ReceivingUnits& units_;
  RequestExecutor& executor_;
  AnswerSender& answers_;
};

}  // namespace verbscope::sim
