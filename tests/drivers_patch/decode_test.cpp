// Decoding of WQEs that are laid out by hand: every opcode, inline data at block borders, the end of the queue, and
// invalid memory. Sizes are those of the drivers' structures (sources in wire/nic_family.hpp).
#include "drivers_patch/queue_memory/decode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/drivers_patch/hand_laid.hpp"

namespace verbscope::driver {
namespace {

constexpr ibv_sge kOne{.addr = 0x7fff12345678, .length = 4096, .lkey = 0xabcd};

HandWqe with(HandWqe wqe, std::vector<ibv_sge> elements) {
  wqe.elements = std::move(elements);
  return wqe;
}
HandWqe inlined(HandWqe wqe, std::size_t bytes) {
  wqe.inline_data = some_bytes(bytes);
  return wqe;
}
HandWqe hand_send(unsigned opcode = kSend) {
  return {.opcode = opcode, .immediate = 0x01020304};
}
HandWqe hand_datagram(unsigned opcode = kSend) {
  return {.opcode = opcode, .immediate = 0x01020304, .datagram = true, .remote_qpn = 0x654321, .qkey = 0x11111111};
}
HandWqe hand_one_sided(unsigned opcode) {
  return {
      .opcode = opcode, .immediate = 0x01020304, .one_sided = true, .remote_address = 0x8877665544332211, .rkey = 7};
}
HandWqe hand_atomic(unsigned opcode) {
  HandWqe wqe = hand_one_sided(opcode);
  wqe.atomic = true;
  wqe.swap_or_add = 0x1112131415161718;
  wqe.compare = 0x2122232425262728;
  return wqe;
}

// A queue with slots for any WQE.
HandQueue roomy(NicFamily family) {
  return family == NicFamily::mlx5 ? HandQueue(family) : HandQueue(family, 8, 1024);
}

void expect_as_laid(const Wqe& read, const HandWqe& laid) {
  const unsigned flags = (laid.signaled ? unsigned{IBV_SEND_SIGNALED} : 0u) |
                         (laid.fence ? unsigned{IBV_SEND_FENCE} : 0u) |
                         (laid.solicited ? unsigned{IBV_SEND_SOLICITED} : 0u) |
                         (laid.inline_data.empty() ? 0u : unsigned{IBV_SEND_INLINE});
  EXPECT_EQ(read.flags, flags);
  EXPECT_EQ(read.immediate, laid.immediate);
  EXPECT_EQ(read.remote_address, laid.remote_address);
  EXPECT_EQ(read.rkey, laid.rkey);
  EXPECT_EQ(read.swap_or_add, laid.swap_or_add);
  EXPECT_EQ(read.compare, laid.compare);
  EXPECT_EQ(read.remote_qpn, laid.remote_qpn);
  EXPECT_EQ(read.qkey, laid.qkey);
  ASSERT_EQ(read.inline_bytes, laid.inline_data.size());
  EXPECT_TRUE(std::equal(laid.inline_data.begin(), laid.inline_data.end(), read.inline_data.begin(),
                         [](std::uint8_t a, std::byte b) { return a == static_cast<std::uint8_t>(b); }));
  ASSERT_EQ(read.elements, laid.elements.size());
  for (std::size_t i = 0; i < laid.elements.size(); ++i) {
    EXPECT_EQ(read.gather[i].addr, laid.elements[i].addr);
    EXPECT_EQ(read.gather[i].length, laid.elements[i].length);
    EXPECT_EQ(read.gather[i].lkey, laid.elements[i].lkey);
  }
}

struct LaidKind {
  std::string name;
  Transport transport;
  HandWqe laid;
  ibv_wr_opcode opcode;
  std::uint32_t bytes;  // computed by hand, for both families
};

TEST(DecodeWqe, DecodesEveryOpcodeOfEveryTransport) {
  const LaidKind kinds[] = {
      {"RC SEND", Transport::rc, with(hand_send(), {kOne}), IBV_WR_SEND, 32},
      {"RC SEND of nothing", Transport::rc, hand_send(), IBV_WR_SEND, 16},
      {"RC SEND_WITH_IMM", Transport::rc, with(hand_send(kSendImm), {kOne}), IBV_WR_SEND_WITH_IMM, 32},
      {"RC SEND_WITH_INV", Transport::rc, with(hand_send(kSendInv), {kOne}), IBV_WR_SEND_WITH_INV, 32},
      {"RC SEND inline", Transport::rc, inlined(hand_send(), 12), IBV_WR_SEND, 32},
      {"RC WRITE", Transport::rc, with(hand_one_sided(kWrite), {kOne}), IBV_WR_RDMA_WRITE, 48},
      {"RC WRITE of nothing", Transport::rc, hand_one_sided(kWrite), IBV_WR_RDMA_WRITE, 32},
      {"RC WRITE_WITH_IMM", Transport::rc, with(hand_one_sided(kWriteImm), {kOne}), IBV_WR_RDMA_WRITE_WITH_IMM, 48},
      {"RC WRITE inline", Transport::rc, inlined(hand_one_sided(kWrite), 12), IBV_WR_RDMA_WRITE, 48},
      {"RC READ", Transport::rc, with(hand_one_sided(kRead), {kOne}), IBV_WR_RDMA_READ, 48},
      {"RC CMP_AND_SWP", Transport::rc, with(hand_atomic(kCompareSwap), {kOne}), IBV_WR_ATOMIC_CMP_AND_SWP, 64},
      {"RC FETCH_AND_ADD", Transport::rc, with(hand_atomic(kFetchAdd), {kOne}), IBV_WR_ATOMIC_FETCH_AND_ADD, 64},
      {"UC SEND", Transport::uc, with(hand_send(), {kOne}), IBV_WR_SEND, 32},
      {"UC SEND_WITH_IMM", Transport::uc, with(hand_send(kSendImm), {kOne}), IBV_WR_SEND_WITH_IMM, 32},
      {"UC WRITE", Transport::uc, with(hand_one_sided(kWrite), {kOne}), IBV_WR_RDMA_WRITE, 48},
      {"UC WRITE_WITH_IMM inline", Transport::uc, inlined(hand_one_sided(kWriteImm), 28), IBV_WR_RDMA_WRITE_WITH_IMM,
       64},
      {"UD SEND", Transport::ud, with(hand_datagram(), {kOne}), IBV_WR_SEND, 80},
      {"UD SEND_WITH_IMM of nothing", Transport::ud, hand_datagram(kSendImm), IBV_WR_SEND_WITH_IMM, 64},
      {"UD SEND_WITH_IMM inline", Transport::ud, inlined(hand_datagram(kSendImm), 60), IBV_WR_SEND_WITH_IMM, 128},
      {"three elements", Transport::rc, with(hand_one_sided(kWrite), {kOne, {1, 2, 3}, {4, 5, 6}}), IBV_WR_RDMA_WRITE,
       80},
      {"thirty elements", Transport::ud, with(hand_datagram(), std::vector<ibv_sge>(30, kOne)), IBV_WR_SEND, 544},
  };
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    HandQueue memory = roomy(family);
    for (LaidKind kind : kinds) {
      for (const unsigned flags : {0u, 1u, 2u, 4u, 7u}) {
        SCOPED_TRACE(kind.name + " " + std::string(to_string(family)) + ", flags " + std::to_string(flags));
        kind.laid.signaled = (flags & 1) != 0;
        kind.laid.fence = (flags & 2) != 0;
        kind.laid.solicited = (flags & 4) != 0;
        const std::uint32_t position = memory.lay(kind.laid);
        Wqe read;
        ASSERT_EQ(decode(memory.queue(), kind.transport, position, read), Refusal::none);
        EXPECT_EQ(read.opcode, kind.opcode);
        EXPECT_EQ(read.bytes, kind.bytes);
        EXPECT_EQ(read.blocks, (kind.bytes + 63) / 64);
        expect_as_laid(read, kind.laid);
        const std::uint32_t behind = position_behind(memory.queue(), position, read.blocks);
        EXPECT_EQ(behind, memory.position());
      }
    }
  }
}

struct Border {
  std::uint32_t bytes;   // of inline data
  std::uint32_t blocks;  // by hand
};

void expect_blocks(NicFamily family, Transport transport, const HandWqe& wqe, std::initializer_list<Border> borders) {
  HandQueue memory = roomy(family);
  for (const Border& border : borders) {
    SCOPED_TRACE(std::string(to_string(family)) + " " + std::to_string(border.bytes) + " B inline");
    const HandWqe laid = inlined(wqe, border.bytes);
    const std::uint32_t position = memory.lay(laid);
    Wqe read;
    ASSERT_EQ(decode(memory.queue(), transport, position, read), Refusal::none);
    EXPECT_EQ(read.blocks, border.blocks);
    expect_as_laid(read, laid);
  }
}

// mlx5: 64 n - 36, 64 n - 20 and 64 n - 68 bytes fit into n blocks. mlx4: 28, 44 and 0 in the first block, 60 in each
// further.
TEST(DecodeWqe, DecodesInlineDataAtBlockBorders) {
  using enum Transport;
  expect_blocks(NicFamily::mlx5, rc, hand_one_sided(kWrite),
                {{1, 1}, {28, 1}, {29, 2}, {92, 2}, {93, 3}, {156, 3}, {157, 4}, {220, 4}, {221, 5}});
  expect_blocks(NicFamily::mlx5, uc, hand_send(), {{1, 1}, {44, 1}, {45, 2}, {108, 2}, {109, 3}, {236, 4}, {237, 5}});
  expect_blocks(NicFamily::mlx5, ud, hand_datagram(),
                {{1, 2}, {60, 2}, {61, 3}, {124, 3}, {125, 4}, {188, 4}, {189, 5}});
  expect_blocks(NicFamily::mlx4, rc, hand_one_sided(kWrite),
                {{1, 1}, {28, 1}, {29, 2}, {88, 2}, {89, 3}, {148, 3}, {149, 4}});
  expect_blocks(NicFamily::mlx4, uc, hand_send(), {{1, 1}, {44, 1}, {45, 2}, {104, 2}, {105, 3}, {164, 3}, {165, 4}});
  expect_blocks(NicFamily::mlx4, ud, hand_datagram(),
                {{1, 2}, {60, 2}, {61, 3}, {120, 3}, {121, 4}, {180, 4}, {181, 5}});
}

TEST(DecodeWqe, DecodesAnEmptyElement) {
  const HandWqe laid = with(hand_one_sided(kWrite), {kOne, {9, 0, 9}, kOne});
  Wqe read;
  HandQueue mlx5 = roomy(NicFamily::mlx5);
  ASSERT_EQ(decode(mlx5.queue(), Transport::rc, mlx5.lay(laid), read), Refusal::none);
  EXPECT_EQ(read.bytes, 64u);  // its driver omits it
  EXPECT_EQ(read.elements, 2u);
  HandQueue mlx4 = roomy(NicFamily::mlx4);
  ASSERT_EQ(decode(mlx4.queue(), Transport::rc, mlx4.lay(laid), read), Refusal::none);
  EXPECT_EQ(read.bytes, 80u);
  expect_as_laid(read, laid);
}

TEST(DecodeWqe, Mlx5WrapsAroundTheQueue) {
  const HandWqe kinds[] = {inlined(hand_one_sided(kWrite), 200),
                           with(hand_one_sided(kWrite), std::vector<ibv_sge>(9, kOne)), inlined(hand_send(), 230)};
  const HandWqe of_ud[] = {inlined(hand_datagram(), 150), with(hand_datagram(), {kOne, kOne, kOne})};
  const auto check = [](Transport transport, const HandWqe& laid) {
    for (std::uint32_t first = 0; first < 8; ++first) {
      SCOPED_TRACE(first);
      HandQueue memory(NicFamily::mlx5, 8, 64, first);
      Wqe read;
      ASSERT_EQ(decode(memory.queue(), transport, memory.lay(laid), read), Refusal::none);
      expect_as_laid(read, laid);
    }
  };
  for (const HandWqe& laid : kinds) check(Transport::rc, laid);
  for (const HandWqe& laid : of_ud) check(Transport::ud, laid);
}

TEST(DecodeWqe, Mlx5CountsBlocksBy16Bits) {
  HandQueue memory(NicFamily::mlx5, 16, 64, 65534);
  const HandWqe laid = inlined(hand_one_sided(kWrite), 100);  // three blocks
  const std::uint32_t first = memory.lay(laid), second = memory.lay(laid);
  EXPECT_EQ(second, 1u);
  Wqe read;
  ASSERT_EQ(decode(memory.queue(), Transport::rc, first, read), Refusal::none);
  EXPECT_EQ(position_behind(memory.queue(), first, read.blocks), second);
  EXPECT_EQ(decode(memory.queue(), Transport::rc, second, read), Refusal::none);
  memory.ring();
  EXPECT_EQ(next_position(memory.queue(), 0), 4u);
}

TEST(DecodeWqe, Mlx4FlipsTheOwnerBitEachRound) {
  HandQueue memory(NicFamily::mlx4, 8, 256);
  const HandWqe laid = inlined(hand_one_sided(kWrite), 100);
  for (std::uint32_t count = 0; count < 40; ++count) {
    SCOPED_TRACE(count);
    for (const std::uint32_t guess : {memory.position(), 0u, 5u, 15u, 1234567u}) {
      EXPECT_EQ(next_position(memory.queue(), guess), count % 16);
    }
    Wqe read;
    EXPECT_EQ(decode(memory.queue(), Transport::rc, memory.position(), read), Refusal::not_written);
    ASSERT_EQ(decode(memory.queue(), Transport::rc, memory.lay(laid), read), Refusal::none);
    expect_as_laid(read, laid);
  }
}

TEST(DecodeWqe, DecodesBlueFlameWqesOfMlx4) {
  HandQueue memory(NicFamily::mlx4, 8, 256);
  const std::uint32_t position = memory.lay(inlined(hand_one_sided(kWrite), 10));
  memory.plant(position, 1, 2, 0x0102);  // the position that the adapter reads
  memory.plant(position, 4, 3, 0x001234);
  Wqe read;
  EXPECT_EQ(decode(memory.queue(), Transport::rc, position, read), Refusal::none);
  EXPECT_EQ(read.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(read.bytes, 48u);
}

TEST(DecodeWqe, RefusesWqesThatWereNotWritten) {
  Wqe read;
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    HandQueue memory(family, 4, 64);
    EXPECT_EQ(decode(memory.queue(), Transport::rc, 0, read), Refusal::not_written);
    for (int i = 0; i < 4; ++i) memory.lay(with(hand_send(), {kOne}));
    EXPECT_EQ(decode(memory.queue(), Transport::rc, 3, read), Refusal::none);
    EXPECT_EQ(decode(memory.queue(), Transport::rc, 4, read), Refusal::not_written);  // the previous round
    EXPECT_EQ(read.blocks, 0u);
  }
}

struct PlantedNumber {
  Refusal refusal;
  Transport transport;
  HandWqe laid;
  std::size_t offset;
  std::size_t size;
  std::uint64_t number;
};

void expect_refused(NicFamily family, const PlantedNumber& planted) {
  SCOPED_TRACE(std::string(to_string(family)) + ": " + std::string(row_of(kRefusals, planted.refusal).name));
  HandQueue memory = roomy(family);
  const std::uint32_t position = memory.lay(planted.laid);
  Wqe read;
  ASSERT_EQ(decode(memory.queue(), planted.transport, position, read), Refusal::none);
  memory.plant(position, planted.offset, planted.size, planted.number);
  EXPECT_EQ(decode(memory.queue(), planted.transport, position, read), planted.refusal);
}

TEST(DecodeWqe, RefusesInvalidWqesWithTheReason) {
  using enum Transport;
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    const HandWqe write = with(hand_one_sided(kWrite), {kOne});
    expect_refused(family, {Refusal::too_short, rc, write, 7, 1, 1});  // without its remote address
    expect_refused(family, {Refusal::unknown_opcode, rc, write, 3, 1, 0x25});
    expect_refused(family, {Refusal::not_of_transport, uc, write, 3, 1, kRead});
    expect_refused(family, {Refusal::not_of_transport, ud, with(hand_datagram(), {kOne}), 3, 1, kWrite});
    expect_refused(family, {Refusal::past_end, rc, inlined(hand_send(), 20), 16, 4, 0x80000000u | 29});
    expect_refused(family, {Refusal::past_end, rc, write, 32, 4, 0xfffffffeu});
  }
  expect_refused(NicFamily::mlx5, {Refusal::compact_address, ud, with(hand_datagram(), {kOne}), 24, 1, 0});
  expect_refused(NicFamily::mlx4, {Refusal::crosses_line, rc, inlined(hand_send(), 60), 16, 4, 0x80000000u | 45});
  expect_refused(NicFamily::mlx4, {Refusal::stamped, rc, inlined(hand_send(), 60), 64, 4, 0xffffffffu});
  expect_refused(NicFamily::mlx4, {Refusal::too_short, rc, with(hand_send(), {kOne}), 7, 1, 0});
}

TEST(DecodeWqe, RefusesASizeBeyondTheSlot) {
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    HandQueue memory(family, family == NicFamily::mlx5 ? 2 : 8, family == NicFamily::mlx5 ? 64 : 128);
    const std::uint32_t position = memory.lay(with(hand_one_sided(kWrite), {kOne}));
    Wqe read;
    memory.plant(position, 7, 1, 9);  // 144 bytes in 128
    EXPECT_EQ(decode(memory.queue(), Transport::rc, position, read), Refusal::too_long);
    EXPECT_EQ(read.bytes, 0u);
  }
}

TEST(DecodeWqe, RejectsInvalidQueueMemory) {
  const HandQueue memory(NicFamily::mlx5, 8);
  EXPECT_TRUE(is_queue(memory.queue()));
  const auto is_queue_with = [&memory](auto&& change) {
    SendQueue queue = memory.queue();
    change(queue);
    return is_queue(queue);
  };
  EXPECT_FALSE(is_queue_with([](SendQueue& queue) { queue.memory = nullptr; }));
  EXPECT_FALSE(is_queue_with([](SendQueue& queue) { queue.memory += 16; }));
  EXPECT_FALSE(is_queue_with([](SendQueue& queue) { queue.slots = 0; }));
  EXPECT_FALSE(is_queue_with([](SendQueue& queue) { queue.slots = 6; }));
  EXPECT_FALSE(is_queue_with([](SendQueue& queue) { queue.slots = 131072; }));
  EXPECT_FALSE(is_queue_with([](SendQueue& queue) { queue.slot_bytes = 128; }));
  EXPECT_FALSE(is_queue_with([](SendQueue& queue) { queue.doorbell_record = nullptr; }));
  EXPECT_TRUE(is_queue(HandQueue(NicFamily::mlx4, 8, 256).queue()));
}

}  // namespace
}  // namespace verbscope::driver
