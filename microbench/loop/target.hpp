// The passive side of WRITEs and READs: a region of places, one payload each, that its threads leave alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// The bytes of a region of `wanted` bytes, or of one place where that is more. Places lie payload_stride apart.
std::uint64_t target_bytes(const Operation& operation, std::uint64_t wanted);

// Fills a region with what READs find: place k has the message of slot k modulo the number of slots.
void fill_target(const Operation& operation, std::span<std::byte> region);

// A workload that waits for the end; where the WRITEs bring immediates, it posts RECVs for them meanwhile. With
// validation of WRITEs its first thread then looks at every cache line of the region: it must be that line of some
// slot's message, or zeroes where nobody has written. QPs that write to one place at a time may mix there, a line does
// not.
std::unique_ptr<Workload> make_target(const ThreadSetup& setup);

}  // namespace verbscope
