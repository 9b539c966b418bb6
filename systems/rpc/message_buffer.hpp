// Buffers of RPC messages in registered memory (eRPC, NSDI 2019, section 4.2.1):
//
//   [header 0][data of all packets][header 1][header 2] ...
//
// The data of a message is contiguous. Header and data of the first packet are too, so that the adapter reads a small
// message with one DMA. Each other packet takes two.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/memory.hpp"
#include "systems/rpc/packet.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

struct MessageBuffer {
  std::byte* data = nullptr;
  std::uint32_t bytes = 0;     // of the message
  std::uint32_t capacity = 0;  // bytes of data that fit
  std::uint32_t lkey = 0;
  std::uint32_t size_class = 0;  // of its pool

  // The header of packet `packet`.
  std::byte* header(std::uint32_t packet) const {
    if (packet == 0) return data - kPacketHeaderBytes;
    return data + round_up(capacity, alignof(PacketHeader)) + (packet - 1) * std::size_t{kPacketHeaderBytes};
  }
};

// Allocates message buffers of one thread. Memory is registered a chunk at a time and kept until the end; a freed
// buffer serves the next message of its size class.
class MessagePool {
 public:
  // `cut`: of the packets. `device_memory`: null in tests without a device, whose buffers have lkey 0.
  MessagePool(const PacketCut& cut, const Pd* domain, bool huge_pages);

  // A buffer for up to `capacity` bytes of data. Throws Error: more than a message can have, no memory.
  MessageBuffer allocate(std::uint32_t capacity);
  void free(const MessageBuffer& buffer) { classes_[buffer.size_class].push_back(buffer); }

  const PacketCut& cut() const { return cut_; }

 private:
  struct Chunk {
    explicit Chunk(const Pd* domain, std::uint64_t bytes, bool huge_pages);
    Buffer memory;
    std::unique_ptr<Mr> mr;
    std::uint64_t used = 0;
  };

  static constexpr std::uint32_t kClasses = 25;  // class c holds 2^c bytes, headers included

  PacketCut cut_;
  const Pd* domain_;
  bool huge_pages_;
  std::vector<Chunk> chunks_;
  std::vector<std::vector<MessageBuffer>> classes_;
};

}  // namespace verbscope
