// Adapter families that share a driver, the segments of their work queue elements (WQEs), and the facts that each
// driver fixes. From rdma-core 44 (providers/mlx5/{wqe.h,qp.c,mlx5.c}, providers/mlx4/{wqe.h,qp.c,mlx4.c}).
#pragma once

#include <cstdint>
#include <string_view>

#include "common/enum_table.hpp"
#include "common/units.hpp"

namespace verbscope {

inline constexpr Bytes kControlSegment{16};        // mlx5_wqe_ctrl_seg, mlx4_wqe_ctrl_seg
inline constexpr Bytes kRemoteAddressSegment{16};  // mlx5_wqe_raddr_seg, mlx4_wqe_raddr_seg
inline constexpr Bytes kAtomicSegment{16};         // mlx5_wqe_atomic_seg, mlx4_wqe_atomic_seg
inline constexpr Bytes kDatagramSegment{48};       // mlx5_wqe_datagram_seg, mlx4_wqe_datagram_seg
inline constexpr Bytes kDataSegment{16};           // mlx5_wqe_data_seg, mlx4_wqe_data_seg: one SGE
inline constexpr Bytes kInlineHeader{4};     // mlx5_wqe_inline_seg, mlx4_wqe_inline_seg: byte count before the data
inline constexpr Bytes kWqeUnit{16};         // unit of the sizes in a control segment
inline constexpr Bytes kWqeBlock{64};        // MLX5_SEND_WQE_BB; smallest slot of an mlx4 send queue
inline constexpr Bytes kInlineBoundary{64};  // mlx4: an inline chunk never crosses it (MLX4_INLINE_ALIGN)
inline constexpr Bytes kRecvStride{16};      // a RECV with one SGE: one data segment
// mlx5_wqe_srq_next_seg, mlx4_wqe_srq_next_seg: precedes the data segments of a RECV in a shared receive queue. The
// driver links the free RECVs with it when it polls a completion; posting does not write it.
inline constexpr Bytes kSrqNextSegment{16};

enum class NicFamily : std::uint8_t { mlx4, mlx5 };

// ibv_device_attr::vendor_id of both families: the IEEE's number (OUI) of Mellanox.
inline constexpr std::uint32_t kMellanox = 0x02c9;

// Where an adapter can put a short arriving payload. The driver then copies it to its buffer.
enum class InlineReceive : std::uint8_t {
  nowhere,
  in_cqe,   // in the CQE, next to its fields: needs no write of its own
  in_recv,  // in the slot of its RECV, which is enlarged for it: a write to a known address
};

// Defaults: a cluster profile can override them for its adapter.
struct FamilyFacts {
  NicFamily value;
  std::string_view name;       // in profiles and records
  std::string_view driver;     // in the kernel
  int usual_device;            // PCI device id of a common adapter: ConnectX-3, ConnectX-5
  Bytes doorbell;              // size of the MMIO that announces WQEs
  Bytes blueflame_max;         // largest WQE for BlueFlame: half of the usual 512-byte BlueFlame register
  Bytes cqe;                   // default size of a CQE
  Bytes cqe_other;             // the other available size
  Bytes send_doorbell_record;  // stored in host memory per post to a send queue; mlx4 has none
  Bytes recv_doorbell_record;  // stored in host memory per post of RECVs; such a post does nothing else
  Bytes inline_boundary;       // inline data is split here into chunks, each with a header; 0: one chunk
  // True if an SGE of 0 bytes gets a data segment (mlx4: set_data_seg). mlx5_post_send omits it.
  bool writes_empty_elements;
  // mlx4: all send slots of a QP have the same size, the power of two that holds the largest WQE of its capabilities: a
  // SEND on UD, a WRITE on RC and UC (mlx4_calc_sq_wqe_size always includes the remote address segment), with
  // max_inline_data inline or with max_send_sge data segments. mlx5: WQEs are packed in blocks.
  bool fixed_slots;
  // True if BlueFlame also requires data in the WQE: inline payload, or a READ, which mlx4_post_send treats as inline.
  bool blueflame_needs_inline;
  InlineReceive inline_receive;
  // True if a context has several doorbell registers, whose number the user can set. mlx4 has one per context.
  bool several_doorbell_registers;
};

inline constexpr EnumTable<NicFamily, FamilyFacts> kFamilies{{
    {.value = NicFamily::mlx4,
     .name = "mlx4",
     .driver = "mlx4_core",
     .usual_device = 4099,
     .doorbell = Bytes(4),
     .blueflame_max = Bytes(256),
     .cqe = Bytes(32),
     .cqe_other = Bytes(64),
     .send_doorbell_record = Bytes(0),
     .recv_doorbell_record = Bytes(4),
     .inline_boundary = kInlineBoundary,
     .writes_empty_elements = true,
     .fixed_slots = true,
     .blueflame_needs_inline = true,
     .inline_receive = InlineReceive::in_recv,
     .several_doorbell_registers = false},
    {.value = NicFamily::mlx5,
     .name = "mlx5",
     .driver = "mlx5_core",
     .usual_device = 4119,
     .doorbell = Bytes(8),
     .blueflame_max = Bytes(256),
     .cqe = Bytes(64),
     .cqe_other = Bytes(128),
     .send_doorbell_record = Bytes(4),
     .recv_doorbell_record = Bytes(4),
     .inline_boundary = Bytes(0),
     .writes_empty_elements = false,
     .fixed_slots = false,
     .blueflame_needs_inline = false,
     .inline_receive = InlineReceive::in_cqe,
     .several_doorbell_registers = true},
}};
static_assert(in_order(kFamilies));

constexpr const FamilyFacts& facts(NicFamily family) {
  return row_of(kFamilies, family);
}
constexpr std::string_view to_string(NicFamily family) {
  return facts(family).name;
}
// The inverse of to_string; case-sensitive. Throws Error with the text and the allowed values.
inline NicFamily nic_family_from(std::string_view text) {
  return value_named(kFamilies, "NIC family", text);
}

}  // namespace verbscope
