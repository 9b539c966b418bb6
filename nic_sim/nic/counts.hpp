// Counters of a simulated NIC and of its node in the fabric, except PCIe events. They are totals since the start;
// callers take differences.
#pragma once

#include <cstdint>
#include <vector>

#include "common/units.hpp"
#include "nic_sim/net/counts.hpp"

namespace verbscope {

struct NicCounts : FabricCounts {
  std::uint64_t packets_sent = 0;  // request packets, including retransmissions
  std::uint64_t packets_resent = 0;
  std::uint64_t messages_received = 0;  // delivered into a RECV
  std::uint64_t writes_received = 0;    // completed WRITEs of peers
  std::uint64_t reads_served = 0;       // READs of peers
  std::uint64_t atomics_served = 0;     // atomics of peers
  std::uint64_t packets_received = 0;   // requests
  std::uint64_t dropped_no_recv = 0;    // UC, UD: no RECV was posted
  std::uint64_t dropped_refused = 0;    // no such QP, wrong state or transport, wrong Q_Key, out of sequence
  std::uint64_t acks_sent = 0;
  std::uint64_t naks_sent = 0;  // sequence errors and refusals
  std::uint64_t rnr_naks_sent = 0;
  std::uint64_t wqe_cache_hits = 0;
  std::uint64_t wqe_cache_misses = 0;        // WQEs that were read again
  std::uint64_t wqe_cache_reread_lines = 0;  // cache lines of them
  std::uint64_t qp_context_hits = 0;
  std::uint64_t qp_context_misses = 0;
  std::uint64_t qp_context_misses_twice = 0;  // lookups that would have missed in caches of twice the size
  std::uint64_t qp_context_read_lines = 0;    // cache lines that misses read
  std::uint64_t translation_hits = 0;
  std::uint64_t translation_misses = 0;  // each reads one cache line
  std::uint64_t inline_receives = 0;     // payloads that arrived in a CQE or in the slot of their RECV
  std::uint64_t atomic_slot_waits = 0;   // atomics that found their slot taken
  std::uint64_t atomic_slot_wait_ps = 0;
  std::uint64_t recv_waits = 0;  // packets that waited until their RECV was fetched

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("messages_sent", self.messages_sent);
    visit("packets_sent", self.packets_sent);
    visit("packets_resent", self.packets_resent);
    visit("messages_received", self.messages_received);
    visit("writes_received", self.writes_received);
    visit("reads_served", self.reads_served);
    visit("atomics_served", self.atomics_served);
    visit("packets_received", self.packets_received);
    visit("dropped_no_recv", self.dropped_no_recv);
    visit("dropped_refused", self.dropped_refused);
    visit("dropped_by_switch", self.dropped_by_switch);
    visit("acks_sent", self.acks_sent);
    visit("naks_sent", self.naks_sent);
    visit("rnr_naks_sent", self.rnr_naks_sent);
    visit("wqe_cache_hits", self.wqe_cache_hits);
    visit("wqe_cache_misses", self.wqe_cache_misses);
    visit("wqe_cache_reread_lines", self.wqe_cache_reread_lines);
    visit("qp_context_hits", self.qp_context_hits);
    visit("qp_context_misses", self.qp_context_misses);
    visit("qp_context_misses_twice", self.qp_context_misses_twice);
    visit("qp_context_read_lines", self.qp_context_read_lines);
    visit("translation_hits", self.translation_hits);
    visit("translation_misses", self.translation_misses);
    visit("inline_receives", self.inline_receives);
    visit("atomic_slot_waits", self.atomic_slot_waits);
    visit("atomic_slot_wait_ps", self.atomic_slot_wait_ps);
    visit("recv_waits", self.recv_waits);
    visit("credit_waits", self.credit_waits);
  }
};

// Time of a processing unit.
struct UnitTime {
  Picos busy{0};
  Picos waited{0};  // with a WQE or packet, for a read of a context, of translations, or of a RECV
  // Idle although there was work. Requester: WQEs were being fetched, and doorbells waited because the fetch-ahead
  // share was used up. Responder: earlier atomics blocked the first packet.
  Picos held_up{0};
  Picos rereading{0};  // part of `busy`: due to WQEs that had to be read again
};

// Busy times of the parts of a simulated node. They are totals since the start; callers take differences.
struct UsageTimes {
  Picos pcie_to_nic{0};  // the link's directions
  Picos pcie_to_host{0};
  Picos mmio{0};                   // part of pcie_to_nic: MMIO writes, including the gaps after them
  Picos read_tags_held{0};         // summed over tags
  Picos qp_context_reads_held{0};  // outstanding reads of QP contexts, summed over reads
  // The same two, without the time that reads waited for the link.
  Picos read_tags_held_idle{0}, qp_context_reads_held_idle{0};
  std::vector<UnitTime> requester_units{}, responder_units{};
  std::vector<UnitTime> requester_qps{}, responder_qps{};  // the same by QP
  std::vector<Picos> ports_out{}, ports_in{};
  std::vector<Picos> atomic_slots{};     // by slot: time for which it was held
  std::vector<Picos> threads{};          // CPU time of verbs calls, without polling passes that found nothing
  std::vector<Picos> threads_memory{};   // besides: waits for memory
  std::vector<Picos> threads_polling{};  // part of it: calls that poll, whether they find something or not
  std::vector<Picos> locks{};            // by lock: held, or being transferred to the next thread
  std::vector<Picos> shared_lines{};     // by line: being transferred
};

}  // namespace verbscope
