// One simulated NIC: its link to the host, its caches, the tables of its objects, and the two halves that do the work,
// requester and responder.
#pragma once

#include <memory>
#include <vector>

#include "nic_sim/host/memory_watch.hpp"
#include "nic_sim/host/partition.hpp"
#include "nic_sim/host/shared_lines.hpp"
#include "nic_sim/link/fabric.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/atomic_slots.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
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
  WqeCache& wqe_cache() { return wqe_cache_; }
  AtomicSlots& atomic_slots() { return atomic_slots_; }
  UsageTimes usage() const;  // all but threads
  MemoryWatch& memory_watch() { return memory_watch_; }
  SharedLines& shared_lines() { return shared_lines_; }
  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  SimThread* running_thread() const { return threads_.current; }
  std::uint32_t node() const { return node_; }

  // Tables. A number that names nothing yields null.
  std::uint32_t add_qp(SimQp& qp);
  void remove_qp(SimQp& qp);
  SimQp* find_qp(std::uint32_t number) const;
  std::uint32_t add_mr(SimMr& mr);
  void remove_mr(SimMr& mr);
  // The region of `pd` that `key` names if it holds [address, address + bytes) and grants `access`.
  SimMr* find_mr(const ibv_pd& pd, std::uint32_t key, std::uint64_t address, std::uint64_t bytes, int access) const;

  // The same of any protection domain, whatever it grants: what was allowed may have been deregistered since.
  SimMr* region(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const;

  // Whether the state of a QP is in its cache; if not it will be, once the caller has read it.
  bool has_context(QpContext& context);
  // How many translations of [address, address + bytes) are not in their cache, each one cache line to read; they will
  // be there then. None where `key` names no region.
  std::uint64_t missing_translations(std::uint32_t key, std::uint64_t address, std::uint64_t bytes);

  // A packet has arrived at a port.
  void receive(Packet& packet);

  // Writes `packet`'s payload to host memory at `address`, in the region of `rkey`, over PCIe and gives the packet back
  // when the bytes are there; threads that poll that memory wake.
  void write_memory(std::uint64_t address, Packet& packet);
  // Of these, how many are not there yet.
  std::uint64_t writes_under_way() const { return writes_under_way_; }

  // Writes a CQE over PCIe and wakes who polls for it. `what.visible` is not looked at.
  // Inline: what the caller says goes straight to its place.
  void complete(SimCq& cq, const Completion& what) {
    if (cq.waiting() == static_cast<std::uint64_t>(cq.cqe)) {
      cq.overrun = true;  // the program sees it at its next poll; what came before stays readable
      return;
    }
    const Picos visible = write_cqe(cq);
    Completion& completion = cq.next_place();
    completion = what;
    completion.visible = visible;
    tell_of(cq, completion);
  }

  // Puts the QP into the error state: everything outstanding completes as flushed.
  void fail_qp(SimQp& qp);

 private:
  static void memory_written(void* nic, std::uint64_t packet);
  Picos write_cqe(const SimCq& cq);
  void tell_of(SimCq& cq, const Completion& completion);

  Engine& engine_;
  Fabric& fabric_;
  PacketPool& packets_;
  ThreadSlot& threads_;
  const Profile& profile_;
  std::uint32_t node_;
  PcieBus bus_;
  NicCounts counts_;
  WqeCache wqe_cache_;
  QpContextCache qp_contexts_;
  TranslationCache translations_;
  AtomicSlots atomic_slots_;
  MemoryWatch memory_watch_;
  SharedLines shared_lines_;
  std::vector<SimQp*> qps_;
  std::vector<SimMr*> mrs_;
  std::uint32_t mr_registrations_ = 0;
  std::uint64_t writes_under_way_ = 0;
  Requester requester_;
  Responder responder_;
};

}  // namespace verbscope::sim
