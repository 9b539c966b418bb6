// Brings WQEs from the send queues into the NIC: keeps BlueFlame WQEs, reads the WQEs of doorbells, holds them in the
// WQE cache until their last use, and reads again those that were evicted before it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/send_events.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class WqeFetcher {
 public:
  // `scheduler` is told of QPs whose WQEs have come.
  WqeFetcher(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, const SendEvents& events,
             UnitScheduler& scheduler, std::uint64_t seed);
  WqeFetcher(const WqeFetcher&) = delete;
  WqeFetcher& operator=(const WqeFetcher&) = delete;

  // The NIC knows of a batch and has the state of its QP. `low_first`: the low bits of its first WQE, as a QpWord has
  // them.
  void context_is_here(SimQp& qp, std::uint64_t low_first);
  // Begins the next batch of which that is so; false: there is none. Batches go on in the order of posting, whichever
  // has found the state first: what came with the write itself can be taken up, what was rung for is read.
  bool begin_next(SimQp& qp);
  // A DMA read of a batch's WQEs is back.
  void fetched(SimQp& qp, std::uint64_t low_first);
  // So is one of a run that was read again.
  void read_again_is_back(SimQp& qp, std::uint32_t run);

  // Whether the WQE at `next` is in the NIC; else the QP waits for it. What is missing of those that come next is read
  // again meanwhile.
  bool at_hand(SimQp& qp);
  // Whether a WQE is in the NIC for the response to it. If not it is read again.
  bool at_hand_for_response(SimQp& qp, const SendWqe& wqe);

  // A unit takes the WQE up: it no longer counts as fetched ahead, and others may be.
  void taken_up(const SimQp& qp, SendWqe& wqe);
  // The QP will not take up for a long time what was fetched for it: others may fetch ahead meanwhile.
  void give_up_share(SimQp& qp);
  // The last packet of the WQE was made: that was its last use, unless a response is to be scattered as it says.
  void is_sent(SendWqe& wqe);
  // The WQE has had its last use, wherever it is.
  void release(SendWqe& wqe);
  // The QP is flushed, reset or destroyed: none of its WQEs will be used.
  void forget(SimQp& qp);

 private:
  struct Fetch {
    SimQp* qp;
    std::uint16_t generation;
    std::uint64_t first;  // WQE of the batch
  };
  // A share of fetching ahead. There are as many as units, dealt to QPs in turn.
  struct alignas(64) Share {
    std::uint64_t bytes = 0;    // WQEs of so many bytes were fetched and are not taken up
    Picos asked_at{0};          // for the latest of them
    std::deque<Fetch> fetches;  // doorbells whose WQEs are not asked for yet
  };

  Share& share_of(const SimQp& qp) { return shares_[qp.requester.fetch_share]; }
  void fetch_more(Share& share);
  void fetch(SimQp& qp, std::uint64_t first);
  void batch_is_here(SimQp& qp, std::uint64_t first);
  void read_again_ahead(SimQp& qp);
  std::uint64_t read_again(SimQp& qp, std::uint64_t first, std::uint64_t end);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const SendEvents& events_;
  UnitScheduler& scheduler_;
  std::vector<Share> shares_;
  Cache<SendWqe> waiting_;  // from their arrival until they are sent
  Cache<SendWqe> sent_;     // those to which a response must come
};

}  // namespace verbscope::sim
