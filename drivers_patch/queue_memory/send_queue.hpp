// The memory of a send queue: found by the direct-verbs interface of its provider, where its driver writes next, and
// copies of WQEs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/nic_family.hpp"

struct mlx4dv_obj;
struct mlx5dv_obj;

namespace verbscope::driver {

// Driver and adapter use the queue at the same time: contents may change at any moment. Nothing here writes to it.
struct SendQueue {
  NicFamily family = NicFamily::mlx5;
  const std::byte* memory = nullptr;  // aligned to 64
  std::uint32_t slots = 0;            // a power of two, at most 65536
  std::uint32_t slot_bytes = 0;       // a multiple of 64; mlx5: a block, mlx4: a whole WQE
  // mlx5: two counters, of RECVs and of send blocks that the driver has announced to the adapter; big-endian.
  const std::uint32_t* doorbell_record = nullptr;

  std::uint64_t bytes() const { return std::uint64_t{slots} * slot_bytes; }
};

// True if the queue fulfills the conditions above.
bool is_queue(const SendQueue& queue);

// A position is the driver's counter. mlx5: blocks; the control segment has the low 16 bits. mlx4: WQEs; the owner bit
// is set in odd rounds.
//
// Returns the position of the WQE that the driver writes next. mlx5: from the doorbell record. mlx4: from the owner
// bits, searched from `guess`, which may be any value.
std::uint32_t next_position(const SendQueue& queue, std::uint32_t guess);
// The position after a WQE of `blocks`.
std::uint32_t position_behind(const SendQueue& queue, std::uint32_t position, std::uint32_t blocks);

// mlx4: the owner bit of the WQE at a position.
inline bool owner_at(const SendQueue& queue, std::uint32_t position) {
  return (position & queue.slots) != 0;
}

// Copies from a position, starting `skip` bytes after its begin, and wraps around the queue's end. `skip` and the size
// are multiples of 8.
void copy_from(const SendQueue& queue, std::uint32_t position, std::size_t skip, std::span<std::byte> copy);

// Functions of the providers; null if not loaded.
struct DirectVerbs {
  int (*mlx4_init_obj)(mlx4dv_obj* object, std::uint64_t type) = nullptr;
  int (*mlx5_init_obj)(mlx5dv_obj* object, std::uint64_t type) = nullptr;

  bool has(NicFamily family) const {
    return family == NicFamily::mlx4 ? mlx4_init_obj != nullptr : mlx5_init_obj != nullptr;
  }
};

// Searches the libraries that this process has loaded.
DirectVerbs find_direct_verbs();

// Gets the send queue of a QP of an adapter of `family`. Returns 0, ENOSYS without the function, the function's error,
// or EINVAL if it returned no valid queue.
int find_send_queue(const DirectVerbs& direct, NicFamily family, ibv_qp& qp, SendQueue& queue);

}  // namespace verbscope::driver
