// The names of PCIe events, common to all sources (simulator, closed-form model, Intel PCM, PAPI, NIC counters). A
// source lists in its record what it cannot see. Directions are those of the NIC's slot: "to_nic" is host to device,
// "to_host" device to host. Bytes are those of transaction-layer packets; link-layer packets are not counted.
#pragma once

#include <cstdint>

namespace verbscope {

template <class T>
struct PcieEvents {
  T dma_read_lines{};           // cache lines that the NIC read from host memory (4 bytes across two lines count two)
  T dma_write_full_lines{};     // whole cache lines that the NIC wrote
  T dma_write_partial_lines{};  // cache lines that the NIC wrote in part
  T mmio_wc_lines{};            // 64-byte write-combined MMIO writes (BlueFlame, WQE-by-MMIO)
  T mmio_doorbells{};           // 4- or 8-byte MMIO writes (doorbells, CQ arming)
  T tlps_to_nic{};              // MMIO writes and read completions
  T tlps_to_host{};             // read requests and memory writes
  T bytes_to_nic{};             // headers included
  T bytes_to_host{};            // headers included
  T payload_bytes_to_nic{};     // without headers
  T payload_bytes_to_host{};    // without headers

  // Calls visit(name, member) for each, in this order: the only list of names for records, tables and differences.
  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("dma_read_lines", self.dma_read_lines);
    visit("dma_write_full_lines", self.dma_write_full_lines);
    visit("dma_write_partial_lines", self.dma_write_partial_lines);
    visit("mmio_wc_lines", self.mmio_wc_lines);
    visit("mmio_doorbells", self.mmio_doorbells);
    visit("tlps_to_nic", self.tlps_to_nic);
    visit("tlps_to_host", self.tlps_to_host);
    visit("bytes_to_nic", self.bytes_to_nic);
    visit("bytes_to_host", self.bytes_to_host);
    visit("payload_bytes_to_nic", self.payload_bytes_to_nic);
    visit("payload_bytes_to_host", self.payload_bytes_to_host);
  }
};

using PcieCounts = PcieEvents<std::uint64_t>;  // counted over an interval
using PciePerOp = PcieEvents<double>;          // per operation: modelled, or counted and divided

}  // namespace verbscope
