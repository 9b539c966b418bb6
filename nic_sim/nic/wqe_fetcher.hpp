// Brings WQEs from the send queues into the NIC. BlueFlame WQEs arrive by themselves; WQEs of doorbells are read by
// DMA. The WQE cache holds them until their last use; an evicted WQE is read again.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class WqeFetcher {
 public:
  // QPs whose WQEs have arrived join the line of `scheduler`.
  WqeFetcher(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, const SendEvents& events,
             UnitScheduler& scheduler, std::uint64_t seed);
  WqeFetcher(const WqeFetcher&) = delete;
  WqeFetcher& operator=(const WqeFetcher&) = delete;

  // The doorbell or BlueFlame write of a batch has arrived, and the context of its QP is in the NIC. `low_first`: the
  // count of a QpWord, the low bits of the number of the first WQE.
  void context_ready(SimQp& qp, std::uint64_t low_first);
  // Starts the next batch for which that holds, in the order of posting: a BlueFlame WQE is ready, WQEs of a doorbell
  // are read. Returns false if there is none.
  bool begin_next(SimQp& qp);
  // A DMA read of a batch's WQEs has completed.
  void fetched(SimQp& qp, std::uint64_t low_first);
  // A DMA read of evicted WQEs has completed. `run`: their numbers, packed.
  void reread_done(SimQp& qp, std::uint32_t run);

  // Returns true if the QP's next WQE is in the NIC; else the QP waits for it. Also starts to read the next WQEs that
  // were evicted.
  bool next_ready(SimQp& qp);
  // Returns true if the WQE is in the NIC, for the response to it; else reads it again.
  bool ready_for_response(SimQp& qp, const SendWqe& wqe);

  // A unit starts with the WQE: it no longer uses the fetch-ahead share, so that others may be fetched.
  void unit_starts(const SimQp& qp, SendWqe& wqe);
  // The QP will not use its fetched WQEs for a long time: gives back their part of the fetch-ahead share.
  void return_share(SimQp& qp);
  // The last packet of the WQE was built. The WQE is needed again only if a response will be scattered by it.
  void mark_sent(SendWqe& wqe);
  // Drops the WQE from the NIC, wherever it is.
  void release(SendWqe& wqe);
  // Drops all WQEs of the QP, which is flushed, reset or destroyed.
  void forget(SimQp& qp);

 private:
  struct Fetch {
    SimQp* qp;
    std::uint16_t generation;
    std::uint64_t first;  // WQE of the batch
  };
  // A fetch-ahead share limits the bytes of WQEs that are fetched and not yet used. There is one per unit; QPs get them
  // round robin.
  struct alignas(64) Share {
    std::uint64_t bytes = 0;    // of WQEs fetched and not yet used
    Picos requested_at{0};      // time of the latest fetch
    std::deque<Fetch> fetches;  // batches whose fetch has not started
  };

  Share& share_of(const SimQp& qp) { return shares_[qp.requester.fetch_share]; }
  void fetch_more(Share& share);
  void fetch(SimQp& qp, std::uint64_t first);
  void batch_ready(SimQp& qp, std::uint64_t first);
  void reread_ahead(SimQp& qp);
  std::uint64_t reread(SimQp& qp, std::uint64_t first, std::uint64_t end);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const SendEvents& events_;
  UnitScheduler& scheduler_;
  std::vector<Share> shares_;
  Cache<SendWqe> waiting_;  // from arrival until sent
  Cache<SendWqe> sent_;     // sent, and waiting for a response
};

}  // namespace verbscope::sim
