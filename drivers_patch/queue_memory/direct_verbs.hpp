// Finds the send queue of a QP with the direct-verbs interface of its provider, if the process has loaded it. Nothing
// is linked for it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers_patch/queue_memory/send_queue.hpp"

struct mlx4dv_obj;
struct mlx5dv_obj;

namespace verbscope::driver {

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
