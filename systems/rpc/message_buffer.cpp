#include "systems/rpc/message_buffer.hpp"

#include <algorithm>
#include <bit>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kChunkBytes = 1u << 20;
constexpr std::uint64_t kLine = 64;

// Bytes of a buffer. Its first header begins on a cache line.
std::uint64_t buffer_bytes(const PacketCut& cut, std::uint32_t capacity) {
  return cut.packets(capacity) * std::uint64_t{kPacketHeaderBytes} + round_up(capacity, alignof(PacketHeader));
}

}  // namespace

MessagePool::Chunk::Chunk(const Pd* domain, std::uint64_t bytes, bool huge_pages)
    : memory(huge_pages ? Buffer(Bytes(bytes)) : Buffer(Bytes(bytes), PageSize::on_demand)) {
  if (domain != nullptr) mr = std::make_unique<Mr>(*domain, memory.data(), memory.size());
}

MessagePool::MessagePool(const PacketCut& cut, const Pd* domain, bool huge_pages)
    : cut_(cut), domain_(domain), huge_pages_(huge_pages), classes_(kClasses) {}

MessageBuffer MessagePool::allocate(std::uint32_t capacity) {
  if (capacity > cut_.most_bytes()) {
    fail("a message of {} bytes: at most {}, in {} packets of {} bytes", capacity, cut_.most_bytes(),
         cut_.packets(cut_.most_bytes()), cut_.data);
  }
  const std::uint64_t bytes = std::max(std::bit_ceil(buffer_bytes(cut_, capacity)), kLine);
  const auto size_class = static_cast<std::uint32_t>(std::countr_zero(bytes));
  std::vector<MessageBuffer>& freed = classes_[size_class];
  if (!freed.empty()) {
    MessageBuffer buffer = freed.back();
    freed.pop_back();
    buffer.capacity = capacity;
    buffer.bytes = 0;
    return buffer;
  }
  if (chunks_.empty() || chunks_.back().memory.size() - chunks_.back().used < bytes) {
    chunks_.emplace_back(domain_, std::max(bytes, kChunkBytes), huge_pages_);
  }
  Chunk& chunk = chunks_.back();
  std::byte* const begin = chunk.memory.data() + chunk.used;
  chunk.used += bytes;
  return {begin + kPacketHeaderBytes, 0, capacity, chunk.mr == nullptr ? 0 : chunk.mr->lkey(), size_class};
}

}  // namespace verbscope
