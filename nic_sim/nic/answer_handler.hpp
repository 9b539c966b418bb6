// The requester's work on what comes back on RC: acknowledgements, responses to READs and atomics, and the completions
// that follow from them.
#pragma once

#include <infiniband/verbs.h>

#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/payload_writer.hpp"
#include "nic_sim/nic/receiving_units.hpp"
#include "nic_sim/nic/retransmitter.hpp"
#include "nic_sim/nic/send_completer.hpp"
#include "nic_sim/nic/unit_scheduler.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class AnswerHandler {
 public:
  AnswerHandler(Engine& engine, PcieBus& bus, Fabric& fabric, const NicProfile& profile, NicCounts& counts,
                const QpTable& qps, const HostMemory& memory, PayloadWriter& payload_writer, ReceivingUnits& units,
                UnitScheduler& scheduler, WqeFetcher& fetcher, SendCompleter& completer, Retransmitter& retransmitter)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        profile_(profile),
        counts_(counts),
        qps_(qps),
        memory_(memory),
        payload_writer_(payload_writer),
        units_(units),
        scheduler_(scheduler),
        fetcher_(fetcher),
        completer_(completer),
        retransmitter_(retransmitter) {}
  AnswerHandler(const AnswerHandler&) = delete;
  AnswerHandler& operator=(const AnswerHandler&) = delete;

  // A unit has taken in an acknowledgement of either kind or a response; gives the packet back when it is done with it.
  void take(SimQp& qp, Packet& packet);

  // The QP is flushed, reset or destroyed: answers that wait are dropped.
  void forget(SimQp& qp);

 private:
  static void wqe_read(void* handler, std::uint64_t word);
  static void wqe_handled(void* handler, std::uint64_t word);
  void handle_all(SimQp& qp);
  void handle_ack(SimQp& qp, const Packet& packet);
  void handle_response(SimQp& qp, SendWqe& wqe, Packet& packet);
  ibv_wc_status scatter(SimQp& qp, const SendWqe& wqe, Packet& packet);
  std::uint32_t confirmed_by(SimQp& qp, std::uint32_t sequence);
  void acknowledge_up_to(SimQp& qp, std::uint32_t sequence);

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const QpTable& qps_;
  const HostMemory& memory_;
  PayloadWriter& payload_writer_;
  ReceivingUnits& units_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  SendCompleter& completer_;
  Retransmitter& retransmitter_;
};

}  // namespace verbscope::sim
