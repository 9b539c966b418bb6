// Send queues of both families laid out by hand, byte by byte, as the drivers of rdma-core 44 lay them out
// (providers/mlx5/qp.c: _mlx5_post_send, providers/mlx4/qp.c: mlx4_post_send). It shares no code and no structure with
// the decoder.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "drivers_patch/queue_memory/send_queue.hpp"

namespace verbscope::driver {

// Opcodes of the adapter.
inline constexpr unsigned kSendInv = 0x01, kWrite = 0x08, kWriteImm = 0x09, kSend = 0x0a, kSendImm = 0x0b, kRead = 0x10,
                          kCompareSwap = 0x11, kFetchAdd = 0x12;

struct HandWqe {
  unsigned opcode = kSend;
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  std::uint32_t immediate = 0;
  bool datagram = false;  // it has an address vector of 48 bytes
  std::uint32_t remote_qpn = 0;
  std::uint32_t qkey = 0;
  bool one_sided = false;
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  bool atomic = false;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
  std::vector<std::uint8_t> inline_data{};  // inline data, or else the elements
  std::vector<ibv_sge> elements{};
};

class HandQueue {
 public:
  explicit HandQueue(NicFamily family, std::uint32_t slots = 64, std::uint32_t slot_bytes = 64, std::uint32_t first = 0)
      : lines_(std::size_t{slots} * slot_bytes / sizeof(Line)),
        family_(family),
        slots_(slots),
        slot_bytes_(slot_bytes),
        position_(first) {
    if (family == NicFamily::mlx4) take_all();
    ring();
  }
  // As a reset of the QP does.
  void reset() {
    position_ = 0;
    if (family_ == NicFamily::mlx4) take_all();
    ring();
  }

  SendQueue queue() const {
    return {.family = family_,
            .memory = reinterpret_cast<const std::byte*>(lines_.data()),
            .slots = slots_,
            .slot_bytes = slot_bytes_,
            .doorbell_record = family_ == NicFamily::mlx5 ? record_.data() : nullptr};
  }

  // The position of the next WQE.
  std::uint32_t position() const { return position_; }
  // Returns its position. mlx4: stamps the next slot.
  std::uint32_t lay(const HandWqe& wqe) {
    const std::uint32_t at = position_;
    begin_ = std::size_t{at % slots_} * slot_bytes_;
    at_ = 16;
    put_segments(wqe);
    const std::size_t units = (at_ + 15) / 16;
    put(12, 4, wqe.immediate);
    if (family_ == NicFamily::mlx5) {
      put(8, 4, (wqe.fence ? 0x80u : 0u) | (wqe.signaled ? 0x08u : 0u) | (wqe.solicited ? 0x02u : 0u));
      put(4, 4, kQpNum << 8 | units);
      put(0, 4, std::uint64_t{at} << 8 | wqe.opcode);
      position_ = static_cast<std::uint32_t>(at + (units + 3) / 4) & 0xffff;
    } else {
      put(8, 4, (wqe.signaled ? 0x0cu : 0u) | (wqe.solicited ? 0x02u : 0u));
      put(4, 4, (wqe.fence ? 0x40u : 0u) | units);
      put(0, 4, ((at & slots_) != 0 ? 0x80000000u : 0u) | wqe.opcode);
      position_ = (at + 1) % (2 * slots_);
      stamp(position_ % slots_);
    }
    return at;
  }
  // Discards all WQEs from this position on.
  void go_back(std::uint32_t position) { position_ = position; }
  // mlx5: updates the doorbell record.
  void ring() {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&record_[1]);
    bytes[2] = static_cast<std::uint8_t>(position_ >> 8);
    bytes[3] = static_cast<std::uint8_t>(position_);
  }
  // Writes a big-endian number of `size` bytes at an offset from the beginning of a slot.
  void plant(std::uint32_t position, std::size_t offset, std::size_t size, std::uint64_t number) {
    begin_ = std::size_t{position % slots_} * slot_bytes_;
    put(offset, size, number);
  }

 private:
  struct alignas(64) Line {
    std::array<std::uint8_t, 64> bytes{};
  };
  static constexpr std::uint64_t kQpNum = 0x1234;

  void put_byte(std::size_t offset, std::uint8_t value) {
    const std::size_t at = (begin_ + offset) % (std::size_t{slots_} * slot_bytes_);
    lines_[at / 64].bytes[at % 64] = value;
  }
  void put(std::size_t offset, std::size_t size, std::uint64_t number) {
    for (std::size_t i = 0; i < size; ++i)
      put_byte(offset + i, static_cast<std::uint8_t>(number >> 8 * (size - 1 - i)));
  }
  void append(std::size_t size, std::uint64_t number) {
    put(at_, size, number);
    at_ += size;
  }

  void put_segments(const HandWqe& wqe) {
    if (wqe.datagram) put_address(wqe);
    if (wqe.one_sided) {
      append(8, wqe.remote_address);
      append(4, wqe.rkey);
      append(4, 0);
    }
    if (wqe.atomic) {
      append(8, wqe.swap_or_add);
      append(8, wqe.compare);
    }
    if (!wqe.inline_data.empty()) return put_inline(wqe.inline_data);
    for (const ibv_sge& element : wqe.elements) put_element(element);
  }
  void put_address(const HandWqe& wqe) {
    if (family_ == NicFamily::mlx5) {
      append(4, wqe.qkey);
      append(4, 0);
      append(4, 0x80000000u | wqe.remote_qpn);
      for (int i = 0; i < 9; ++i) append(4, 0xa5a5a5a5);
    } else {
      for (int i = 0; i < 8; ++i) append(4, 0xa5a5a5a5);
      append(4, wqe.remote_qpn);
      append(4, wqe.qkey);
      append(8, 0);
    }
  }
  // mlx5 omits an empty element; mlx4 writes it as empty inline data.
  void put_element(const ibv_sge& element) {
    if (element.length == 0 && family_ == NicFamily::mlx5) return;
    append(4, element.length == 0 ? 0x80000000u : element.length);
    append(4, element.lkey);
    append(8, element.addr);
  }
  void put_inline(const std::vector<std::uint8_t>& data) {
    std::size_t header = at_;
    std::uint32_t length = 0;
    at_ += 4;
    for (const std::uint8_t byte : data) {
      if (family_ == NicFamily::mlx4 && at_ % 64 == 0) {
        put(header, 4, 0x80000000u | length);
        header = at_;
        length = 0;
        at_ += 4;
      }
      put_byte(at_++, byte);
      ++length;
    }
    put(header, 4, 0x80000000u | length);
  }

  // All slots belong to the driver.
  void take_all() {
    for (std::uint32_t slot = 0; slot < slots_; ++slot) {
      begin_ = std::size_t{slot} * slot_bytes_;
      put(0, 4, 0x80000000u);
      put(4, 4, slot_bytes_ / 16);
      stamp(slot);
    }
  }
  void stamp(std::uint32_t slot) {
    begin_ = std::size_t{slot} * slot_bytes_;
    for (std::uint32_t line = 64; line < slot_bytes_; line += 64) put(line, 4, 0xffffffffu);
  }

  std::vector<Line> lines_;
  std::array<std::uint32_t, 2> record_{};
  NicFamily family_;
  std::uint32_t slots_;
  std::uint32_t slot_bytes_;
  std::uint32_t position_;
  std::size_t begin_ = 0;  // of the WQE that is laid
  std::size_t at_ = 0;     // in it
};

// Bytes that each differ from the previous one.
inline std::vector<std::uint8_t> some_bytes(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + 3);
  return bytes;
}

}  // namespace verbscope::driver
