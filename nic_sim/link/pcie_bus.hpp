// The PCIe link between a host and its NIC, with the root complex at the host's end: two directions, each a serial
// resource of TLPs; memory reads that wait for a tag, for memory, and for their completions; posted writes; MMIO.
// A transfer is cut into TLPs, each of which is counted; it takes the link for the time of its TLPs together.
#pragma once

#include <cstdint>
#include <vector>

#include "common/pcie_events.hpp"
#include "nic_sim/link/serial_resource.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Whether a transfer keeps its place among others of its kind. PCIe orders a read behind the writes that were issued
// before it. What peers' requests write and read is kept so by the NIC: who READs behind a WRITE sees it. For all other
// reads (WQEs, RECVs, payloads to send, contexts) and writes (responses, CQEs) nothing depends on their order.
enum class Ordered : bool { no, yes };

class PcieBus {
 public:
  PcieBus(Engine& engine, const Profile& profile, std::uint64_t seed);
  PcieBus(const PcieBus&) = delete;
  PcieBus& operator=(const PcieBus&) = delete;

  // NIC: reads `bytes` from host memory at `address` (only its place within lines and RCBs matters); `done` runs when
  // the last completion is at the NIC.
  void dma_read(std::uint64_t address, std::uint64_t bytes, Engine::Action done, void* object, std::uint64_t argument,
                Ordered ordered = Ordered::no);

  // NIC: writes to host memory; yields when the bytes can be seen there. Writes keep their order.
  Picos dma_write(std::uint64_t address, std::uint64_t bytes, Ordered ordered = Ordered::no);

  // The least time from a write until its bytes can be seen.
  Picos write_latency() const { return propagation_ + host_.memory_write; }

  // NIC: when a unit that has just written may go on; now unless its posted writes have run out of credits.
  Picos posted_credit_at() const;

  // CPU: one MMIO write of `bytes` (a 64-byte line, or a doorbell); yields when it has drained to the link. It is at
  // the NIC `propagation` later.
  Picos mmio_write(std::uint64_t bytes);

  Picos propagation() const { return propagation_; }
  const PcieCounts& counts() const { return counts_; }
  Picos busy_to_nic() const { return to_nic_.busy(engine_.now()); }
  Picos busy_to_host() const { return to_host_.busy(engine_.now()); }
  Picos busy_by_mmio() const { return mmio_busy_; }
  // The time that tags were held so far, summed over tags.
  Picos tags_held() const { return tags_held_ + engine_.now() * static_cast<std::int64_t>(tags_ - free_tags_); }
  // How long they would have been if no read had waited for the link.
  Picos tags_held_idle() const { return tags_held_idle_; }
  // What a read of one request takes on an idle link.
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
    std::uint32_t next;  // free or waiting
    Ordered ordered;
  };

  static void at_memory(void* bus, std::uint64_t read);
  static void completed(void* bus, std::uint64_t read);
  void start(std::uint32_t read);
  // When the last of `requests` read requests, which take the link for `time`, has left. The NIC's DMA engines that
  // read and those that write take the link in turns, TLP by TLP: a request waits for one write of a backlog, not for
  // all; an ordered one for all ordered writes besides.
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
  Picos turn_of_write_;  // what the largest posted write takes of the link
  Picos credit_window_;  // how long the link takes to drain all posted credits
  std::uint64_t tags_;
  std::uint64_t free_tags_;
  Random random_;
  SerialResource to_nic_;
  SerialResource to_host_;
  Picos requests_sent_{0};  // when the last read request leaves, but for ordered ones that wait for writes
  Picos ordered_sent_{0};   // when the last ordered write or read request leaves
  Picos mmio_busy_{0};
  Picos tags_held_{0};  // less the present for each tag that is held
  Picos tags_held_idle_{0};
  PcieCounts counts_;
  std::vector<Read> reads_;
  std::uint32_t free_read_;
  std::uint32_t first_waiting_;  // reads without tags, in order, linked through Read::next
  std::uint32_t last_waiting_;
};

}  // namespace verbscope::sim
