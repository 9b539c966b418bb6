// Work queue elements: which segments one has, their sizes, and how a NIC family takes it. Facts only, from rdma-core
// 44 (providers/mlx5/{wqe.h,qp.c,mlx5.c}, providers/mlx4/{wqe.h,qp.c,mlx4.c}); each constant names its structure there.
// The size of a whole WQE is computed once in closed form (pcie_model) and once segment by segment (nic_sim).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/units.hpp"

namespace verbscope {

enum class NicFamily : std::uint8_t { mlx4, mlx5 };
enum class Transport : std::uint8_t { rc, uc, ud };
enum class Verb : std::uint8_t { send, write, read, compare_swap, fetch_add, recv };
constexpr bool is_atomic(Verb verb) {
  return verb == Verb::fetch_add || verb == Verb::compare_swap;
}

// "mlx4"; "RC"; "send", "compare_swap". The inverse throws Error: value and what is allowed. Case matters.
std::string_view to_string(NicFamily family);
std::string_view to_string(Transport transport);
std::string_view to_string(Verb verb);
NicFamily nic_family_from(std::string_view text);
Transport transport_from(std::string_view text);
Verb verb_from(std::string_view text);

// Segments, the same sizes in both families.
inline constexpr Bytes kControlSegment{16};        // mlx5_wqe_ctrl_seg, mlx4_wqe_ctrl_seg
inline constexpr Bytes kRemoteAddressSegment{16};  // mlx5_wqe_raddr_seg, mlx4_wqe_raddr_seg
inline constexpr Bytes kAtomicSegment{16};         // mlx5_wqe_atomic_seg, mlx4_wqe_atomic_seg
inline constexpr Bytes kDatagramSegment{48};       // mlx5_wqe_datagram_seg, mlx4_wqe_datagram_seg
inline constexpr Bytes kDataSegment{16};           // mlx5_wqe_data_seg, mlx4_wqe_data_seg: one SGE
inline constexpr Bytes kInlineHeader{4};     // mlx5_wqe_inline_seg, mlx4_wqe_inline_seg: byte count before the data
inline constexpr Bytes kWqeUnit{16};         // sizes in a control segment count these
inline constexpr Bytes kWqeBlock{64};        // MLX5_SEND_WQE_BB; smallest slot of an mlx4 send queue
inline constexpr Bytes kInlineBoundary{64};  // mlx4: an inline chunk never crosses it (MLX4_INLINE_ALIGN)
inline constexpr Bytes kRecvStride{16};      // a RECV with one SGE: one data segment
// mlx5_wqe_srq_next_seg, mlx4_wqe_srq_next_seg: before the data segments of a RECV in a shared receive queue. The
// driver links the free RECVs with it when a completion is polled; posting does not write it.
inline constexpr Bytes kSrqNextSegment{16};
inline constexpr Bytes kQueueAlignment{4096};  // queue buffers start on a page
inline constexpr Bytes kAtomicOperand{8};      // compare-and-swap and fetch-and-add work on 8 bytes
inline constexpr Bytes kUdGrhRoom{40};         // every UD receive buffer starts with room for a GRH

// What a family fixes by its driver; a profile may state other values where its adapter differs.
struct FamilyFacts {
  NicFamily family;
  Bytes doorbell;              // the MMIO that announces WQEs: mlx5 writes 8 B, mlx4 4 B
  Bytes blueflame_max;         // half of the usual 512-byte BlueFlame register
  Bytes cqe;                   // default CQE
  Bytes cqe_other;             // the size that can be asked for instead
  Bytes send_doorbell_record;  // stored in host memory per post of sends; mlx4 has none
  Bytes recv_doorbell_record;  // stored in host memory per post of RECVs, which is all a RECV post does
  Bytes inline_boundary;       // inline data is cut here into chunks with a header each; 0: one chunk
  // mlx4: a send slot has one size per QP, the power of two that holds the largest WQE its capabilities allow: a SEND
  // on UD, a WRITE on RC and UC (mlx4_calc_sq_wqe_size counts its remote address segment whatever is posted), with
  // max_inline_data inline or with max_send_sge data segments. mlx5: WQEs are packed in blocks.
  bool fixed_slots;
  // BlueFlame also wants data in the WQE: inline payload, or a READ, which mlx4_post_send treats as inline.
  bool blueflame_needs_inline;
};

inline constexpr std::array<FamilyFacts, 2> kFamilies{{
    {NicFamily::mlx4, Bytes(4), Bytes(256), Bytes(32), Bytes(64), Bytes(0), Bytes(4), kInlineBoundary, true, true},
    {NicFamily::mlx5, Bytes(8), Bytes(256), Bytes(64), Bytes(128), Bytes(4), Bytes(4), Bytes(0), false, false},
}};

constexpr const FamilyFacts& family_facts(NicFamily family) {
  return kFamilies[static_cast<std::size_t>(family)];
}

// The longest payload that a CQE of this size holds beside its fields ("scatter to CQE", inline receive): on RC and UC
// what a SEND brings, at the requester on RC what a READ or an atomic brings. rdma-core 44 providers/mlx5/cq.c:
// MLX5_INLINE_SCATTER_32 (in the CQE) and MLX5_INLINE_SCATTER_64 (in the first half of a CQE of 128 B); mlx4 has none.
constexpr Bytes inline_receive_room(NicFamily family, Bytes cqe) {
  return family == NicFamily::mlx4 ? Bytes(0) : Bytes(cqe >= Bytes(128) ? 64 : 32);
}

// The segments of a WQE, in this order: control, then datagram, then remote address, then atomic, then the data (inline
// or one data segment per SGE; none at all when the payload is empty).
struct WqeLayout {
  NicFamily family;
  Verb verb;
  Transport transport;
  bool control;
  bool datagram;
  bool remote_address;
  bool atomic;
  bool may_inline;
};

// Every verb that a transport has (InfiniBand Architecture Specification 1.3, volume 1, section 9.4, table of
// operations by transport). UC has no READ and no atomics, UD only SEND.
inline constexpr std::array<WqeLayout, 22> kWqeLayouts{{
    // family, verb, transport, control, datagram, remote address, atomic, may inline
    {NicFamily::mlx4, Verb::send, Transport::rc, true, false, false, false, true},
    {NicFamily::mlx4, Verb::send, Transport::uc, true, false, false, false, true},
    {NicFamily::mlx4, Verb::send, Transport::ud, true, true, false, false, true},
    {NicFamily::mlx4, Verb::write, Transport::rc, true, false, true, false, true},
    {NicFamily::mlx4, Verb::write, Transport::uc, true, false, true, false, true},
    {NicFamily::mlx4, Verb::read, Transport::rc, true, false, true, false, false},
    {NicFamily::mlx4, Verb::compare_swap, Transport::rc, true, false, true, true, false},
    {NicFamily::mlx4, Verb::fetch_add, Transport::rc, true, false, true, true, false},
    {NicFamily::mlx4, Verb::recv, Transport::rc, false, false, false, false, false},
    {NicFamily::mlx4, Verb::recv, Transport::uc, false, false, false, false, false},
    {NicFamily::mlx4, Verb::recv, Transport::ud, false, false, false, false, false},
    {NicFamily::mlx5, Verb::send, Transport::rc, true, false, false, false, true},
    {NicFamily::mlx5, Verb::send, Transport::uc, true, false, false, false, true},
    {NicFamily::mlx5, Verb::send, Transport::ud, true, true, false, false, true},
    {NicFamily::mlx5, Verb::write, Transport::rc, true, false, true, false, true},
    {NicFamily::mlx5, Verb::write, Transport::uc, true, false, true, false, true},
    {NicFamily::mlx5, Verb::read, Transport::rc, true, false, true, false, false},
    {NicFamily::mlx5, Verb::compare_swap, Transport::rc, true, false, true, true, false},
    {NicFamily::mlx5, Verb::fetch_add, Transport::rc, true, false, true, true, false},
    {NicFamily::mlx5, Verb::recv, Transport::rc, false, false, false, false, false},
    {NicFamily::mlx5, Verb::recv, Transport::uc, false, false, false, false, false},
    {NicFamily::mlx5, Verb::recv, Transport::ud, false, false, false, false, false},
}};

// Null when the transport does not have the verb.
constexpr const WqeLayout* find_wqe_layout(NicFamily family, Verb verb, Transport transport) {
  for (const WqeLayout& layout : kWqeLayouts) {
    if (layout.family == family && layout.verb == verb && layout.transport == transport) return &layout;
  }
  return nullptr;
}

static_assert(family_facts(NicFamily::mlx4).family == NicFamily::mlx4);
static_assert(family_facts(NicFamily::mlx5).family == NicFamily::mlx5);

}  // namespace verbscope
