// Closed-form cost of a DMA transfer or an MMIO write on the link.
#pragma once

#include "common/pcie_events.hpp"
#include "common/units.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

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

// sum += weight * part, member by member.
void add_weighted(PciePerOp& sum, const PciePerOp& part, double weight);

}  // namespace verbscope
