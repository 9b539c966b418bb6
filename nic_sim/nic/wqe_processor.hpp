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
#include "nic_sim/nic/send_events.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Makes request packets from WQEs, gathers their payload, and sends the packets of a QP in order.
class PacketBuilder {
 public:
  // `node`: of the NIC, the packets' source.
  PacketBuilder(PcieBus& bus, Fabric& fabric, PacketPool& packets, LinkType link, NicCounts& counts,
                const SendEvents& events, const HostMemory& memory, Congestion& congestion, UnitScheduler& scheduler,
                SendCompleter& completer, std::uint32_t node)
      : bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(link),
        counts_(counts),
        events_(events),
        memory_(memory),
        congestion_(congestion),
        scheduler_(scheduler),
        completer_(completer),
        node_(node) {}
  PacketBuilder(const PacketBuilder&) = delete;
  PacketBuilder& operator=(const PacketBuilder&) = delete;

  // Builds the packet of `wqe` that is next, and sends it when its payload is there. The QP may fail: its state says.
  void send_next(SimQp& qp, const SendWqe& wqe);
  // A piece of the payload of `packet` was read; with the last one it can be sent.
  void payload_read(SimQp& qp, Packet& packet);
  // The packet in front need wait no longer for the rate of the QP, or for room at the port.
  void rate_allows(SimQp& qp);

 private:
  struct Piece {
    std::uint64_t address;
    std::uint64_t bytes;
  };

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
  const SendEvents& events_;
  const HostMemory& memory_;
  Congestion& congestion_;
  UnitScheduler& scheduler_;
  SendCompleter& completer_;
  std::uint32_t node_;
  std::vector<Piece> pieces_;  // the payload of the packet that is being built
};

// The work of a requester's unit on the QP that it has taken: which addresses it looks up, the time that the WQE or its
// next packet costs, and the packet that it sends then.
class WqeProcessor {
 public:
  WqeProcessor(Engine& engine, const NicProfile& profile, HostMemory& memory, UnitScheduler& scheduler,
               WqeFetcher& fetcher, PacketBuilder& packets, SendCompleter& completer, Retransmitter& retransmitter)
      : engine_(engine),
        profile_(profile),
        memory_(memory),
        scheduler_(scheduler),
        fetcher_(fetcher),
        packets_(packets),
        completer_(completer),
        retransmitter_(retransmitter) {}
  WqeProcessor(const WqeProcessor&) = delete;
  WqeProcessor& operator=(const WqeProcessor&) = delete;

  // How many translations are missing in the NIC of the addresses that the next packet needs, or the whole response to
  // a READ.
  std::uint64_t missing_translations(SimQp& qp);
  // They are there: the unit works. Yields the end.
  Picos begin_work(SimQp& qp);
  // That has come: sends the packet, if the QP may still send. The QP may fail: its state says.
  void send_packet(SimQp& qp);

 private:
  void wqe_sent(SimQp& qp, SendWqe& wqe);

  Engine& engine_;
  const NicProfile& profile_;
  HostMemory& memory_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  PacketBuilder& packets_;
  SendCompleter& completer_;
  Retransmitter& retransmitter_;
};

}  // namespace verbscope::sim
