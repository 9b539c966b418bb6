// What a unit does with a WQE: its packets, one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/link/framing.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/confirmation.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Makes request packets from WQEs, gathers their payload, and sends the packets of a QP in order.
class PacketBuilder {
 public:
  // `node`: of the NIC, the packets' source.
  PacketBuilder(PcieBus& bus, Fabric& fabric, PacketPool& packets, LinkType link, NicCounts& counts, const QpTable& qps,
                const HostMemory& memory, Congestion& congestion, UnitScheduler& scheduler, SendCompleter& completer,
                std::uint32_t node)
      : bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(link),
        counts_(counts),
        qps_(qps),
        memory_(memory),
        congestion_(congestion),
        scheduler_(scheduler),
        completer_(completer),
        node_(node) {}
  PacketBuilder(const PacketBuilder&) = delete;
  PacketBuilder& operator=(const PacketBuilder&) = delete;

  // Builds the packet of `wqe` that is next, and sends it when its payload is there. The QP may fail: its state says.
  void send_next(SimQp& qp, const SendWqe& wqe);

 private:
  struct Piece {
    std::uint64_t address;
    std::uint64_t bytes;
  };

  static void payload_read(void* builder, std::uint64_t packet);
  static void rate_allows(void* builder, std::uint64_t qp);
  bool gather(SimQp& qp, Packet& packet) const;
  Packet& make(const SimQp& qp, const SendWqe& wqe);
  void count(SimQp& qp, const SendWqe& wqe, Packet& packet);
  bool read_payload(SimQp& qp, const SendWqe& wqe, Packet& packet);
  void send_ready(SimQp& qp);

  PcieBus& bus_;
  Fabric& fabric_;
  PacketPool& packets_;
  Framing framing_;
  NicCounts& counts_;
  const QpTable& qps_;
  const HostMemory& memory_;
  Congestion& congestion_;
  UnitScheduler& scheduler_;
  SendCompleter& completer_;
  std::uint32_t node_;
  std::vector<Piece> pieces_;  // the payload of the packet that is being built
};

// The work of a requester's unit on the QP that it has taken: it has the addresses of the payload looked up, takes the
// time that the WQE or its next packet costs, and sends one packet.
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
