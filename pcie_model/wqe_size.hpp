// Closed-form size of a WQE and its position in the queue.
#pragma once

#include "common/units.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

struct WqeSize {
  Bytes used;    // segments, chunk headers and inline payload
  Bytes padded;  // rounded up to 16 bytes, the unit of the control segment

  // Cache lines that the WQE covers. Every send WQE starts at a cache line.
  int lines() const { return static_cast<int>(divide_up(padded.value, kWqeBlock.value)); }
};

// Size of the WQE of `verb`. The payload is in the WQE (`inlined`) or is referenced by one data segment; an empty
// payload has neither. Throws Error if the transport does not have the verb, or if the verb cannot be inlined.
//   mlx5 inline: fixed + 4 + x                          (one inline segment)
//   mlx4 inline: fixed + x + 4 * chunks, with chunks = 1 + ceil((x - first) / 60), first = 60 - fixed mod 64
WqeSize wqe_size(NicFamily family, Verb verb, Transport transport, Bytes payload, bool inlined);

// Layout of a send queue with WQEs of one size: distance between WQEs, and size of the ring, which starts at a page.
struct SendQueueLayout {
  Bytes stride;
  Bytes ring;
};

// mlx5: the stride is in whole blocks; the ring is the smallest power of two that holds `depth` WQEs.
//
// mlx4: the stride is a power of two, at least 64, that holds the largest WQE for the QP's capabilities (`max_inline`,
// and one SGE if `has_sge`): a SEND on UD, else a WRITE. The number of slots is a power of two, at least `depth`.
SendQueueLayout send_queue_layout(NicFamily family, Transport transport, WqeSize wqe, Bytes max_inline, bool has_sge,
                                  int depth);

}  // namespace verbscope
