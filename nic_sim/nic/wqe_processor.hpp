// The work of a requester's unit on the QP that it has taken: it has the addresses of the payload looked up, takes the
// time that the WQE or its next packet costs, and sends one packet.
#pragma once

#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/packet_builder.hpp"
#include "nic_sim/nic/retransmitter.hpp"
#include "nic_sim/nic/send_completer.hpp"
#include "nic_sim/nic/unit_scheduler.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class WqeProcessor {
 public:
  WqeProcessor(Engine& engine, PcieBus& bus, const NicProfile& profile, HostMemory& memory, UnitScheduler& scheduler,
               WqeFetcher& fetcher, PacketBuilder& packets, SendCompleter& completer, Retransmitter& retransmitter)
      : engine_(engine),
        bus_(bus),
        profile_(profile),
        memory_(memory),
        scheduler_(scheduler),
        fetcher_(fetcher),
        packets_(packets),
        completer_(completer),
        retransmitter_(retransmitter) {}
  WqeProcessor(const WqeProcessor&) = delete;
  WqeProcessor& operator=(const WqeProcessor&) = delete;

  // Begins work on the QP. The scheduler hears of its end by work_done.
  void take_up(SimQp& qp);

 private:
  static void translations_read(void* processor, std::uint64_t qp);
  static void time_is_over(void* processor, std::uint64_t qp);
  void begin(SimQp& qp);
  void send_packet(SimQp& qp);
  void wqe_sent(SimQp& qp, SendWqe& wqe);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  HostMemory& memory_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  PacketBuilder& packets_;
  SendCompleter& completer_;
  Retransmitter& retransmitter_;
};

}  // namespace verbscope::sim
