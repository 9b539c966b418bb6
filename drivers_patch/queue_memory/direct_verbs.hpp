// Where the send queue of a QP lies, by the direct-verbs interface of its provider, as the process has it: nothing is
// linked for it, and it may be absent.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers_patch/queue_memory/send_queue.hpp"

struct mlx4dv_obj;
struct mlx5dv_obj;

namespace verbscope::driver {

// The providers' functions; null: the process has none.
struct DirectVerbs {
  int (*mlx4_init_obj)(mlx4dv_obj* object, std::uint64_t type) = nullptr;
  int (*mlx5_init_obj)(mlx5dv_obj* object, std::uint64_t type) = nullptr;

  bool has(NicFamily family) const {
    return family == NicFamily::mlx4 ? mlx4_init_obj != nullptr : mlx5_init_obj != nullptr;
  }
};

// Those of this process, of libraries that it has loaded.
DirectVerbs find_direct_verbs();

// Asks for the send queue of a QP of an adapter of `family`. Yields 0; ENOSYS without the function; what the function
// yields; EINVAL where what it tells of is no queue.
int find_send_queue(const DirectVerbs& direct, NicFamily family, ibv_qp& qp, SendQueue& queue);

}  // namespace verbscope::driver
