// The memory of a send queue, where its driver writes next, and copies of what stands there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/nic_family.hpp"

namespace verbscope::driver {

// Its driver and its adapter go on as they like: what is read may change at once, and nothing here writes.
struct SendQueue {
  NicFamily family = NicFamily::mlx5;
  const std::byte* memory = nullptr;  // at a multiple of 64
  std::uint32_t slots = 0;            // a power of two, at most 65536
  std::uint32_t slot_bytes = 0;  // a multiple of 64: mlx5, a block; mlx4, the place of a WQE, of which each takes one
  // mlx5: of RECVs and of sends, the blocks that the driver has told the adapter of, in the order of the network.
  const std::uint32_t* doorbell_record = nullptr;

  std::uint64_t bytes() const { return std::uint64_t{slots} * slot_bytes; }
};

// Whether a queue is as SendQueue says.
bool is_queue(const SendQueue& queue);

// A position is what the driver counts: on mlx5 blocks, of which a control segment has the last 16 bits; on mlx4 WQEs,
// of which the owner bit tells whether the round is odd.
//
// The position of the WQE that the driver writes next. mlx5: from the doorbell record. mlx4: from the owner bits; the
// search begins at `guess`, which any value may be.
std::uint32_t next_position(const SendQueue& queue, std::uint32_t guess);
// The position behind a WQE of so many blocks.
std::uint32_t position_behind(const SendQueue& queue, std::uint32_t position, std::uint32_t blocks);

// The owner bit that mlx4 gives to the WQE at a position.
inline bool owner_at(const SendQueue& queue, std::uint32_t position) {
  return (position & queue.slots) != 0;
}

// Copies what stands at a position, from `skip` bytes behind its beginning on, and goes on at the queue's beginning
// behind its end. `skip` and the size are multiples of 8.
void copy_from(const SendQueue& queue, std::uint32_t position, std::size_t skip, std::span<std::byte> copy);

}  // namespace verbscope::driver
