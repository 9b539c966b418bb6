// The requester: the half of a NIC that sends requests. Its parts use only what their constructors get, and schedule
// SendEvents. requester.cpp handles these events, in the order of a WQE's life.
#pragma once

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
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/nic/wqe_processor.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class Requester {
 public:
  // `units`: process the answers. `recvs`: flushed when a QP fails. `node`: number of the NIC's node. `seed`: for the
  // WQE cache.
  Requester(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            EthernetCounts& ethernet, const QpTable& qps, QpContexts& contexts, HostMemory& memory,
            Congestion& congestion, PayloadWriter& payload_writer, CqeWriter& cqes, RecvConsumer& recvs,
            ReceivingUnits& units, std::uint32_t node, std::uint64_t seed);
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

  // Completes work requests, and fails QPs.
  SendCompleter& completer() { return completer_; }

  // Busy and waiting times of each unit so far.
  std::vector<UnitTime> unit_times() const { return scheduler_.times(); }

 private:
  enum class Step;

  template <Step step>
  static void on(void* requester, std::uint64_t argument);
  template <Step step>
  void live(SimQp& qp, std::uint64_t argument);
  template <Step step>
  void detour(SimQp& qp, std::uint64_t argument);
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
