// How a driver notifies the adapter: by BlueFlame or by a doorbell, with the doorbell registers of its context; and the
// notification for a completion event. Shared by the model, the simulated device and the tracer.
#pragma once

#include <cstdint>

#include "common/units.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

// A post of `list` WQEs. `size`: bytes of the last WQE, in whole units of kWqeUnit.
struct Post {
  Verb verb;
  Bytes payload;
  bool inlined;
  Bytes size;
  std::uint64_t list;
};

// rdma-core 44, mlx5_post_send and mlx4_post_send: BlueFlame for a single WQE that is longer than one unit and at most
// `largest` bytes; otherwise a doorbell. mlx4 also requires inline data, and treats a READ and a WRITE without data as
// inline.
constexpr bool goes_by_blueflame(NicFamily family, Bytes largest, const Post& post) {
  if (post.list != 1 || post.size <= kWqeUnit || post.size > largest) return false;
  const bool empty = post.payload.value == 0;
  const bool like_inline = post.verb == Verb::read || (post.verb == Verb::write && empty);
  return !facts(family).blueflame_needs_inline || like_inline || (post.inlined && !empty);
}

// mlx5 calls them micro UARs. The defaults are MLX5_TOTAL_UUARS 16 and MLX5_NUM_LOW_LAT_UUARS 4. If there are more than
// 16, at most 12 are shared (rdma-core 44, providers/mlx5/mlx5.c: MLX5_MED_BFREGS_TSHOLD).
struct DoorbellRegisters {
  static constexpr std::uint32_t kDefault = 16;
  static constexpr std::uint32_t kMinExclusive = 4;
  static constexpr std::uint32_t kMaxShared = 12;

  std::uint32_t total = kDefault;  // more than kMinExclusive

  constexpr std::uint32_t exclusive() const {
    return total > kMinExclusive + kMaxShared ? total - kMaxShared : kMinExclusive;
  }
  constexpr std::uint32_t shared() const { return total - exclusive(); }
};

// Register of a context's QP number `qp`, counted from 0. The first QPs get an exclusive register each; each later one
// gets the shared register with the fewest QPs (rdma-core 44, providers/mlx5/verbs.c: mlx5_get_qp_uar).
constexpr std::uint32_t doorbell_register_of(const DoorbellRegisters& registers, std::uint32_t qp) {
  const std::uint32_t exclusive = registers.exclusive();
  return qp < exclusive ? qp : exclusive + (qp - exclusive) % registers.shared();
}

constexpr bool is_shared(const DoorbellRegisters& registers, std::uint32_t number) {
  return number >= registers.exclusive();
}

// Arming a completion queue: one MMIO of two words (rdma-core 44: mlx5_arm_cq, mlx4_arm_cq).
inline constexpr Bytes kArmDoorbell{8};
// Then the adapter writes an entry to the event queue (Linux 6.1: struct mlx5_eqe; mlx4 with 64-byte entries) and an
// MSI-X interrupt message (PCI Express Base Specification 3.0, section 6.1.4: one dword).
inline constexpr Bytes kEventQueueEntry{64};
inline constexpr Bytes kInterruptMessage{4};

}  // namespace verbscope
