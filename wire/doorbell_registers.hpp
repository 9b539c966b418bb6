// How a driver gives the doorbell registers of a context to its QPs: a wire fact that model and simulated device read.
// The registers that several QPs have are written under a lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/wqe.hpp"

namespace verbscope {

// mlx5 calls them micro UARs. MLX5_TOTAL_UUARS is 16 by default, MLX5_NUM_LOW_LAT_UUARS 4, and of more than 16 at most
// 12 are shared (rdma-core 44, providers/mlx5/mlx5.c: MLX5_MED_BFREGS_TSHOLD).
struct DoorbellRegisters {
  static constexpr std::uint32_t kDefault = 16;
  static constexpr std::uint32_t kFewestExclusive = 4;
  static constexpr std::uint32_t kMostShared = 12;

  std::uint32_t total = kDefault;  // more than kFewestExclusive

  constexpr std::uint32_t exclusive() const {
    return total > kFewestExclusive + kMostShared ? total - kMostShared : kFewestExclusive;
  }
  constexpr std::uint32_t shared() const { return total - exclusive(); }
};

// The register of the QP that is the context's `qp`-th, from 0 on: the first ones have one each, the next take those
// that fewest have (rdma-core 44, providers/mlx5/verbs.c: mlx5_get_qp_uar).
constexpr std::uint32_t doorbell_register_of(const DoorbellRegisters& registers, std::uint32_t qp) {
  const std::uint32_t exclusive = registers.exclusive();
  return qp < exclusive ? qp : exclusive + (qp - exclusive) % registers.shared();
}

// Whether the register is written under a lock.
constexpr bool is_shared(const DoorbellRegisters& registers, std::uint32_t number) {
  return number >= registers.exclusive();
}

}  // namespace verbscope
