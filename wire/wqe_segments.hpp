// The segments of a work queue element (WQE) and the sizes that both NIC families share, from rdma-core 44
// (providers/mlx5/{wqe.h,qp.c,mlx5.c}, providers/mlx4/{wqe.h,qp.c,mlx4.c}). Each constant names its structure there.
#pragma once

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

}  // namespace verbscope
