// The size of a WQE and its place in its queue, in closed form.
#pragma once

#include "common/units.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

struct WqeSize {
  Bytes used;    // segments, chunk headers and inline payload
  Bytes padded;  // rounded up to 16 bytes, the unit of the control segment

  // The cache lines that the WQE covers when it starts on one, which every send WQE does.
  int lines() const { return static_cast<int>(divide_up(padded.value, kWqeBlock.value)); }
};

// The WQE of `verb` with `payload` bytes, in the WQE (`inlined`) or behind one data segment; an empty payload has
// neither. Throws Error when the transport does not have the verb, or the verb takes no inline payload.
//   mlx5 inline: fixed + 4 + x                          (one inline segment)
//   mlx4 inline: fixed + x + 4 * chunks, with chunks = 1 + ceil((x - first) / 60), first = 60 - fixed mod 64
WqeSize wqe_size(NicFamily family, Verb verb, Transport transport, Bytes payload, bool inlined);

// WQEs of one size lie in a send queue `stride` bytes from one to the next, in a ring of `ring` bytes that starts on a
// page.
struct SendQueueLayout {
  Bytes stride;
  Bytes ring;
};

// mlx5: whole blocks; the ring is the power of two that holds `depth` of them.
// mlx4: the power of two, at least 64, that holds the largest WQE of the QP's capabilities (`max_inline`, and one SGE
// if `has_sge`): a SEND on UD, a WRITE otherwise; the ring has a power of two of slots, at least `depth`.
SendQueueLayout send_queue_layout(NicFamily family, Transport transport, WqeSize wqe, Bytes max_inline, bool has_sge,
                                  int depth);

}  // namespace verbscope
