// The PCIe link between a host and its NIC, with the root complex at the host's end: two directions, each a serial
// resource of TLPs; memory reads that wait for a tag, for memory and for their completions; posted writes; MMIO. A
// transfer is split into TLPs, which are counted one by one, but it takes the link once, for the time of all its TLPs.
#pragma once

#include <cstdint>
#include <vector>

#include "common/pcie_events.hpp"
#include "nic_sim/link/serial_resource.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Ordered transfers keep their order. PCIe orders a read after the writes issued before it. The NIC keeps that order
// for peers' requests, so that a READ after a WRITE returns the written data. For other reads (WQEs, RECVs, payloads to
// send, contexts) and writes (responses, CQEs), order does not matter.
enum class Ordered : bool { no, yes };

class PcieBus {
 public:
  PcieBus(Engine& engine, const Profile& profile, std::uint64_t seed);
  PcieBus(const PcieBus&) = delete;
  PcieBus& operator=(const PcieBus&) = delete;

  // NIC: reads `bytes` from host memory at `address` (only its offset within lines and RCBs matters). `done` runs when
  // the last completion arrives at the NIC.
  void dma_read(std::uint64_t address, std::uint64_t bytes, Engine::Action done, void* object, std::uint64_t argument,
                Ordered ordered = Ordered::no);

  // NIC: writes to host memory. Returns the time at which the bytes are visible. Writes keep their order. `ago`: how
  // long ago the NIC issued the write, at most write_latency().
  Picos dma_write(std::uint64_t address, std::uint64_t bytes, Ordered ordered = Ordered::no, Picos ago = Picos(0));

  // Minimum time from a write until its bytes are visible.
  Picos write_latency() const { return propagation_ + host_.memory_write; }

  // NIC: returns when a unit that has just written may continue: now, unless the posted credits are used up.
  Picos posted_credit_at() const;

  // CPU: writes a 64-byte line or a doorbell by MMIO. Returns the time at which it has drained to the link. It arrives
  // at the NIC `propagation` later.
  Picos mmio_write(std::uint64_t bytes);

  Picos propagation() const { return propagation_; }
  const PcieCounts& counts() const { return counts_; }
  Picos busy_to_nic() const { return to_nic_.busy(engine_.now()); }
  Picos busy_to_host() const { return to_host_.busy(engine_.now()); }
  Picos busy_by_mmio() const { return mmio_busy_; }
  // The time that tags have been held so far, summed over tags.
  Picos tags_held() const { return tags_held_ + engine_.now() * static_cast<std::int64_t>(tags_ - free_tags_); }
  // The same, without the time that reads waited for the link.
  Picos tags_held_idle() const { return tags_held_idle_; }
  // The duration of a read of one request on an idle link.
  Picos idle_read(std::uint64_t bytes) const {
    return time_to_host(link_.request_header.value) + time_to_nic(link_.completion_header.value + bytes) +
           2 * propagation_ + host_.memory_read + host_.memory_read_jitter / 2;
  }

 private:
  struct Read {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t requests;
    std::uint64_t tags;
    Engine::Action done;
    void* object;
    std::uint64_t argument;
    std::uint32_t next;  // in the list of free or of waiting reads
    Ordered ordered;
  };

  static void at_memory(void* bus, std::uint64_t read);
  static void completed(void* bus, std::uint64_t read);
  void start(std::uint32_t read);
  // Returns when the last of `requests` read requests, which take the link for `time`, has left. The NIC's reading and
  // writing DMA engines take the link in turns, TLP by TLP, so a request waits for one write of a backlog, not for all.
  // An ordered request also waits for all ordered writes.
  Picos send_requests(std::uint64_t requests, Picos time, Ordered ordered);
  Picos time_to_nic(std::uint64_t bytes) const { return time_to_nic_(Bytes(bytes)); }
  Picos time_to_host(std::uint64_t bytes) const { return time_to_host_(Bytes(bytes)); }
  void count_to_nic(std::uint64_t header, std::uint64_t payload);
  void count_to_host(std::uint64_t header, std::uint64_t payload);

  Engine& engine_;
  PcieLink link_;
  HostProfile host_;
  TransferTime time_to_nic_;
  TransferTime time_to_host_;
  Picos propagation_;
  Picos mmio_gap_;
  Picos turn_of_write_;  // link time of the largest posted write
  Picos credit_window_;  // time to drain all posted credits
  std::uint64_t tags_;
  std::uint64_t free_tags_;
  Random random_;
  SerialResource to_nic_;
  SerialResource to_host_;
  Picos requests_sent_{0};  // when the last read request leaves, except ordered ones that wait for writes
  Picos ordered_sent_{0};   // when the last ordered write or read request leaves
  Picos mmio_busy_{0};
  Picos tags_held_{0};  // release times minus start times of tags
  Picos tags_held_idle_{0};
  PcieCounts counts_;
  std::vector<Read> reads_;
  std::uint32_t free_read_;
  std::uint32_t first_waiting_;  // reads without tags, in order, linked through Read::next
  std::uint32_t last_waiting_;
};

}  // namespace verbscope::sim
