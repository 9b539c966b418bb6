// How a driver assigns the doorbell registers of a context to its QPs. Used by the model and by the simulated device. A
// register that several QPs share is written under a lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/wqe.hpp"

namespace verbscope {

// mlx5 calls them micro UARs. The defaults are MLX5_TOTAL_UUARS 16 and MLX5_NUM_LOW_LAT_UUARS 4. If there are more than
// 16, at most 12 are shared (rdma-core 44, providers/mlx5/mlx5.c: MLX5_MED_BFREGS_TSHOLD).
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

// Register of a context's QP number `qp`, counted from 0. The first QPs get an exclusive register each; each later one
// gets the shared register with the fewest QPs (rdma-core 44, providers/mlx5/verbs.c: mlx5_get_qp_uar).
constexpr std::uint32_t doorbell_register_of(const DoorbellRegisters& registers, std::uint32_t qp) {
  const std::uint32_t exclusive = registers.exclusive();
  return qp < exclusive ? qp : exclusive + (qp - exclusive) % registers.shared();
}

constexpr bool is_shared(const DoorbellRegisters& registers, std::uint32_t number) {
  return number >= registers.exclusive();
}

}  // namespace verbscope
