// The cost of a DMA transfer or an MMIO write on the link, in closed form.
#pragma once

#include "common/pcie_events.hpp"
#include "common/units.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

// The adapter reads `length` bytes from `address`: ceil(length / MRRS) requests, counted from the start; completions
// end at multiples of RCB. Nothing when the length is 0.
PciePerOp dma_read(const PcieLink& link, std::uint64_t address, Bytes length);

// The adapter writes `length` bytes to `address`: ceil(length / MPS) requests, counted from the start.
PciePerOp dma_write(const PcieLink& link, std::uint64_t address, Bytes length);

// The CPU writes `lines` write-combined lines, or one doorbell of `size` bytes.
PciePerOp mmio_lines(const PcieLink& link, int lines);
PciePerOp mmio_doorbell(const PcieLink& link, Bytes size);

// The mean cost of a read of `length` bytes from a ring of `ring` bytes, when reads start one after another `step`
// bytes apart, from 0 on for ever. A read that crosses the end of the ring is two. `length` <= `ring`, and `step` > 0.
PciePerOp ring_read_mean(const PcieLink& link, Bytes ring, Bytes step, Bytes length);

// sum += weight * part, member by member.
void add_weighted(PciePerOp& sum, const PciePerOp& part, double weight);

}  // namespace verbscope
