// PCI Express facts: rates and header sizes per generation, and the link of a cluster. The closed-form model
// (pcie_model) and the simulator (nic_sim) each compute transfer costs from them.
#pragma once

#include <array>

#include "common/units.hpp"

namespace verbscope {

inline constexpr Bytes kCacheLine{64};  // unit of write combining and of the CPU's PCIe counters

// The link of one slot. Both directions are equal.
struct PcieLink {
  int generation = 0;
  int lanes = 0;
  double lane_mb_per_s = 0;   // one lane, one direction, 10^6 B/s, without physical-layer encoding
  Bytes request_header{};     // bytes that a memory read or write request adds to its payload, framing included
  Bytes completion_header{};  // bytes that a read completion adds to its payload, framing included
  Bytes mps{};                // Max_Payload_Size: largest payload of a memory write
  Bytes mrrs{};               // Max_Read_Request_Size: largest read per request
  // A request is answered by completions of at most `completion` bytes each, a multiple of the Read Completion
  // Boundary. All but the last end at a multiple of the RCB (PCIe Base Specification 5.0, section 2.3.1.1). C_rc in
  // Kalia et al., ATC 2016.
  Bytes rcb{};
  Bytes completion{};

  // All lanes, one direction.
  BytesPerSecond bandwidth() const { return BytesPerSecond{lane_mb_per_s * 1e6 * lanes}; }
};

// Each generation fixes its rates and header sizes. Lane rates are transfer rates without encoding: 8b/10b for 1.0 and
// 2.0, 128b/130b for 3.0 to 5.0 (PCIe Base Specification 5.0, section 4.2), 236 TLP bytes per 256-byte flit for 6.0
// (PCIe Base Specification 6.0, section 4.2: 236 TLP, 6 DLP, 8 CRC, 6 FEC). Headers up to 5.0: framing 2, sequence
// number and LCRC 6, common header 4, and 12 for a request with a 64-bit address or 8 for a completion (Neugebauer et
// al., "Understanding PCIe performance for end host networking", SIGCOMM 2018). 6.0 has no framing, sequence number or
// LCRC per TLP, so 16 and 12 remain (optional header content is assumed to be absent).
struct PcieGeneration {
  int generation;
  double gt_per_s;
  double lane_mb_per_s;
  Bytes request_header;
  Bytes completion_header;
};

inline constexpr double kFlitTlpShare = 236.0 / 256.0;

inline constexpr std::array<PcieGeneration, 6> kPcieGenerations{{
    {1, 2.5, 2500.0 / 8 * 8 / 10, Bytes(24), Bytes(20)},
    {2, 5, 5000.0 / 8 * 8 / 10, Bytes(24), Bytes(20)},
    {3, 8, 8000.0 / 8 * 128 / 130, Bytes(24), Bytes(20)},
    {4, 16, 16000.0 / 8 * 128 / 130, Bytes(24), Bytes(20)},
    {5, 32, 32000.0 / 8 * 128 / 130, Bytes(24), Bytes(20)},
    {6, 64, 64000.0 / 8 * kFlitTlpShare, Bytes(16), Bytes(12)},
}};

// Link widths of the PCIe Base Specification 5.0, section 4.2 (6.0 dropped x12 and x32).
inline constexpr std::array<int, 7> kPcieWidths{1, 2, 4, 8, 12, 16, 32};

}  // namespace verbscope
