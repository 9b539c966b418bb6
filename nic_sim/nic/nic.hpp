// One simulated NIC: its link to the host, the parts that its two halves share, and these halves, requester and
// responder.
#pragma once

#include <cstdint>

#include "nic_sim/host/shared_lines.hpp"
#include "nic_sim/host/thread.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/multicast.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/requester.hpp"
#include "nic_sim/nic/responder.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class Nic {
 public:
  Nic(Partition& home, Fabric& fabric, const Profile& profile, std::uint32_t node, std::uint64_t seed);
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  Engine& engine() { return engine_; }
  Fabric& fabric() { return fabric_; }
  PacketPool& packets() { return packets_; }
  PcieBus& bus() { return bus_; }
  const PcieBus& bus() const { return bus_; }
  const Profile& profile() const { return profile_; }
  NicCounts& counts() { return counts_; }
  const NicCounts& counts() const { return counts_; }
  const EthernetCounts& ethernet_counts() const { return ethernet_counts_; }
  UsageTimes usage() const;  // except threads and locks
  HostMemory& memory() { return memory_; }
  MulticastGroups& groups() { return groups_; }
  SrqTable& srqs() { return srqs_; }
  SimQp* find_qp(std::uint32_t number) const { return qps_.find(number); }
  PayloadWriter& payload_writer() { return payload_writer_; }
  SharedLines& shared_lines() { return shared_lines_; }
  LockTimes& lock_times() { return lock_times_; }
  const LockTimes& lock_times() const { return lock_times_; }
  const SharedLines& shared_lines() const { return shared_lines_; }
  CompletionEvents& completion_events() { return completion_events_; }
  RecvFetcher& recv_fetcher() { return recv_fetcher_; }
  RecvConsumer& recvs() { return recvs_; }
  Requester& requester() { return requester_; }
  SimThread* running_thread() const { return home_.running; }
  std::uint32_t node() const { return node_; }

  // Returns the number of the new QP, and assigns its first unit on each side.
  std::uint32_t add_qp(SimQp& qp);
  void remove_qp(SimQp& qp);

  // Cancels the work of a QP that is being destroyed or reset.
  void forget_work(SimQp& qp) {
    requester_.completer().forget(qp);
    receiving_units_.forget(qp);
  }

 private:
  // Called by the fabric (Attachment).
  static void receive(void* nic, Packet& packet);
  static void left_port(void* nic, const Packet& packet, Picos when);
  static bool has_joined(void* nic, const Packet& packet);

  Engine& engine_;
  Fabric& fabric_;
  PacketPool& packets_;
  Partition& home_;
  const Profile& profile_;
  std::uint32_t node_;
  PcieBus bus_;
  NicCounts counts_;
  EthernetCounts ethernet_counts_;
  SharedLines shared_lines_;
  LockTimes lock_times_;
  QpTable qps_;
  SrqTable srqs_;
  MulticastGroups groups_;
  QpContexts contexts_;
  HostMemory memory_;
  Congestion congestion_;
  PayloadWriter payload_writer_;
  AsyncEvents async_events_;
  CompletionEvents completion_events_;
  CqeWriter cqe_writer_;
  const ReceiveEvents receive_events_;  // of responder_
  ReceivingUnits receiving_units_;
  RecvFetcher recv_fetcher_;
  RecvConsumer recvs_;
  Requester requester_;
  Responder responder_;
};

}  // namespace verbscope::sim
