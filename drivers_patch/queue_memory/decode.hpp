// Decodes the WQE at a position of a send queue: the inverse of the mlx5 and mlx4 providers (rdma-core 44,
// providers/mlx5/qp.c, providers/mlx4/qp.c; structures in mlx5dv.h and mlx4dv.h).
#pragma once

#include "drivers_patch/queue_memory/send_queue.hpp"
#include "drivers_patch/queue_memory/wqe.hpp"
#include "wire/transport.hpp"

namespace verbscope::driver {

// Fills `wqe`. For any memory contents it reads only inside the queue. If it returns a refusal, only the sizes in `wqe`
// are valid, 0 if they could not be read. mlx4: each WQE fills one slot; mlx5: a WQE may wrap around the queue's end.
Refusal decode(const SendQueue& queue, Transport transport, std::uint32_t position, Wqe& wqe);

}  // namespace verbscope::driver
