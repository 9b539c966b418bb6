// The requester: the half of a NIC that sends requests. Its parts use only what their constructors get, and schedule
// SendEvents. requester.cpp handles these events, in the order of a WQE's life.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/confirmation.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Builds request packets from WQEs, gathers their payload, and sends the packets of each QP in order.
class PacketBuilder {
 public:
  // `node`: number of the NIC's node, the source of the packets.
  PacketBuilder(PcieBus& bus, Fabric& fabric, PacketPool& packets, const Profile& profile, NicCounts& counts,
                const SendEvents& events, const HostMemory& memory, Congestion& congestion, UnitScheduler& scheduler,
                SendCompleter& completer, std::uint32_t node)
      : bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(profile),
        counts_(counts),
        events_(events),
        memory_(memory),
        congestion_(congestion),
        scheduler_(scheduler),
        completer_(completer),
        node_(node) {}
  PacketBuilder(const PacketBuilder&) = delete;
  PacketBuilder& operator=(const PacketBuilder&) = delete;

  // Builds the next packet of `wqe`, and sends it when its payload has been read. The QP may fail; check its state.
  void send_next(SimQp& qp, const SendWqe& wqe);
  // A piece of the payload of `packet` was read. After the last piece the packet is sent.
  void payload_read(SimQp& qp, Packet& packet);
  // The QP's first packet no longer waits for the QP's rate or for room at the port.
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
  std::vector<Piece> pieces_;  // payload of the packet being built; a member to reuse its memory
};

// A requester unit's work on one packet of a QP's next WQE: address translation, service time, and sending.
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

  // Number of translations that are not cached, for the addresses of the next packet or of a READ's whole response.
  std::uint64_t missing_translations(SimQp& qp);
  // All translations are cached: the unit starts its service time. Returns the end.
  Picos begin_work(SimQp& qp);
  // The service time is over: sends the packet if the QP still may. The QP may fail; check its state.
  void send_packet(SimQp& qp);

 private:
  void wqe_sent(SimQp& qp, SendWqe& wqe);
  [[gnu::noinline]] void do_key_work(SimQp& qp, SendWqe& wqe);  // rare

  Engine& engine_;
  const NicProfile& profile_;
  HostMemory& memory_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  PacketBuilder& packets_;
  SendCompleter& completer_;
  Retransmitter& retransmitter_;
};

class Requester {
 public:
  // `units`: process the answers. `recvs`: flushed when a QP fails. `node`: number of the NIC's node. `seed`: for the
  // WQE cache.
  Requester(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            EthernetCounts& ethernet, const QpTable& qps, QpContexts& contexts, HostMemory& memory,
            Congestion& congestion, PayloadWriter& payload_writer, CqeWriter& cqes, AsyncEvents& async_events,
            RecvConsumer& recvs, ReceivingUnits& units, std::uint32_t node, std::uint64_t seed);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // Gives a new QP its first unit and its share of the fetch-ahead.
  void bind(SimQp& qp) { scheduler_.bind(qp); }
  // The MMIO write of a batch (doorbell or BlueFlame) reaches the NIC at `when`. `batch`: the number of the batch's
  // first WQE, packed by with_generation.
  void batch_arrives(SimQp& qp, std::uint64_t batch, Picos when);
  // The last packet of a signaled work request on UC or UD leaves the port at `when`.
  void left_port(SimQp& qp, const Packet& packet, Picos when);
  // A unit has processed an ACK, a NAK or a response.
  void take_answer(SimQp& qp, Packet& answer);

  // The handler of CompletionEvents: a completion of a QP was lost.
  static void completion_lost(void* requester, std::uint64_t qp) {
    static_cast<Requester*>(requester)->completer_.fail_untold(as_qp(qp), IBV_EVENT_QP_FATAL);
  }

  // Completes work requests, and fails QPs.
  SendCompleter& completer() { return completer_; }

  // Busy and waiting times of each unit so far.
  std::vector<UnitTime> unit_times() const { return scheduler_.times(); }

 private:
  enum class Step;

  template <Step step>
  static void on(void* requester, std::uint64_t argument);
  template <Step step>
  void advance(SimQp& qp, std::uint64_t argument);
  template <Step step>
  SimQp* qp_of(std::uint64_t argument) const;
  void serve() {
    if (scheduler_.can_serve()) serve_line();
  }
  void serve_line();

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  const QpTable& qps_;
  QpContexts& contexts_;
  const SendEvents events_;
  UnitScheduler scheduler_;
  WqeFetcher fetcher_;
  SendCompleter completer_;
  Retransmitter retransmitter_;
  PacketBuilder packets_;
  WqeProcessor processor_;
  AnswerHandler answers_;
};

}  // namespace verbscope::sim
