// Closed-form costs of the parts of an operation: size of a WQE and its place in the queue, bytes of its packets on the
// wire, and TLPs of its DMA transfers and MMIO writes.
#pragma once

#include "common/members.hpp"
#include "common/pcie_events.hpp"
#include "common/units.hpp"
#include "wire/packet.hpp"
#include "wire/pcie.hpp"
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

// Bytes that the requester sends: the message of a SEND or WRITE in packets with at most `mtu` bytes of payload, or the
// request of a READ or atomic. `immediate` adds 4 bytes once.
Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu,
                    LinkType link = LinkType::infiniband);

// Bytes of the responder's response to a READ or atomic. 0 for other verbs: acknowledgements coalesce, and the model
// ignores them.
Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu, LinkType link = LinkType::infiniband);

// Cost of a DMA read of `length` bytes from `address`: ceil(length / MRRS) requests, counted from the start.
// Completions end at multiples of RCB. No cost if the length is 0.
PciePerOp dma_read(const PcieLink& link, std::uint64_t address, Bytes length);

// Cost of a DMA write of `length` bytes to `address`: ceil(length / MPS) requests, counted from the start.
PciePerOp dma_write(const PcieLink& link, std::uint64_t address, Bytes length);

// Cost of `lines` write-combined lines from the CPU, or of one doorbell of `size` bytes.
PciePerOp mmio_lines(const PcieLink& link, int lines);
PciePerOp mmio_doorbell(const PcieLink& link, Bytes size);

// Mean cost of a read of `length` bytes from a ring of `ring` bytes, over endlessly many reads whose starts are `step`
// bytes apart, beginning at 0. A read across the end of the ring counts as two. Precondition: `length` <= `ring`,
// `step` > 0.
PciePerOp ring_read_mean(const PcieLink& link, Bytes ring, Bytes step, Bytes length);

}  // namespace verbscope
