// Reads the WQE at a position of a send queue: the inverse of what the providers of mlx5 and mlx4 write (rdma-core 44,
// providers/mlx5/qp.c, providers/mlx4/qp.c; their structures are in mlx5dv.h and mlx4dv.h).
#pragma once

#include "drivers_patch/queue_memory/send_queue.hpp"
#include "drivers_patch/queue_memory/wqe.hpp"
#include "wire/transport.hpp"

namespace verbscope::driver {

// Fills `wqe`. Whatever the memory has, nothing outside of the queue is read; what is no WQE is refused, and then `wqe`
// has the sizes where those could be read (0 where not), and nothing else that means something. mlx4: each WQE begins
// at a slot and ends in it; mlx5: one may go on at the queue's beginning.
Refusal decode(const SendQueue& queue, Transport transport, std::uint32_t position, Wqe& wqe);

}  // namespace verbscope::driver
