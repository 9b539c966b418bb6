// Atomic operations. InfiniBand Architecture Specification 1.3, volume 1, sections 9.4.5 (ATOMIC operations: 64 bits,
// naturally aligned, the original value comes back) and 9.7.4.1 (their validation).
#include <limits>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

class Atomics : public Rig {
 protected:
  // Carries one out on the word at `target` of b; yields the value that came back.
  std::uint64_t add(const Pair& pair, std::size_t target, std::uint64_t value) {
    send(pair.a, fetch_add(a.sge(kResult, 8), b, target, value));
    EXPECT_EQ(await_success(a.send_cq(), "a fetch-and-add").opcode, IBV_WC_FETCH_ADD);
    return a.word(kResult);
  }
  std::uint64_t swap(const Pair& pair, std::size_t target, std::uint64_t compare, std::uint64_t value) {
    send(pair.a, compare_swap(a.sge(kResult, 8), b, target, compare, value));
    EXPECT_EQ(await_success(a.send_cq(), "a compare-and-swap").opcode, IBV_WC_COMP_SWAP);
    return a.word(kResult);
  }

  static constexpr std::size_t kResult = 4096;
};

TEST_F(Atomics, AddAndBringTheOldValue) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 1000;
  EXPECT_EQ(add(pair, 64, 234), 1000u);
  EXPECT_EQ(b.word(64), 1234u);
  EXPECT_EQ(add(pair, 64, 1), 1234u);
  EXPECT_EQ(b.word(64), 1235u);
}

TEST_F(Atomics, AddNothing) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 0x0102030405060708;
  EXPECT_EQ(add(pair, 64, 0), 0x0102030405060708u);
  EXPECT_EQ(b.word(64), 0x0102030405060708u);
}

// Unsigned addition modulo 2^64.
TEST_F(Atomics, WrapAround) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = kMax;
  EXPECT_EQ(add(pair, 64, 2), kMax);
  EXPECT_EQ(b.word(64), 1u);
}

TEST_F(Atomics, SubtractByAddingTheComplement) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 50;
  EXPECT_EQ(add(pair, 64, kMax), 50u);
  EXPECT_EQ(b.word(64), 49u);
}

// A carry goes through all eight bytes.
TEST_F(Atomics, AddAcrossTheWholeWord) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 0x00ffffffffffffff;
  add(pair, 64, 1);
  EXPECT_EQ(b.word(64), 0x0100000000000000u);
}

TEST_F(Atomics, SwapWhenTheComparisonHolds) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 7;
  EXPECT_EQ(swap(pair, 64, 7, 99), 7u);
  EXPECT_EQ(b.word(64), 99u);
}

TEST_F(Atomics, LeaveTheWordWhenItDoesNot) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 7;
  EXPECT_EQ(swap(pair, 64, 8, 99), 7u);
  EXPECT_EQ(b.word(64), 7u);
}

TEST_F(Atomics, CompareAllBits) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 0x8000000000000000;
  EXPECT_EQ(swap(pair, 64, 0, 1), 0x8000000000000000u);
  EXPECT_EQ(b.word(64), 0x8000000000000000u);
  EXPECT_EQ(swap(pair, 64, 0x8000000000000000, kMax), 0x8000000000000000u);
  EXPECT_EQ(b.word(64), kMax);
}

TEST_F(Atomics, TouchTheirWordOnly) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(b.memory(0), 4096, 1);
  std::uint64_t before = 0;
  std::memcpy(&before, b.memory(72), 8);
  EXPECT_EQ(add(pair, 72, 5), before);
  EXPECT_EQ(b.word(72), before + 5);
  EXPECT_TRUE(has_pattern(b.memory(0), 72, 1));
  EXPECT_TRUE(has_pattern(b.memory(80), 4016, 1, 80));
  EXPECT_TRUE(is_zero(a.memory(kResult + 8), 64)) << "behind the result";
}

TEST_F(Atomics, ReachTheLastWordOfARegion) {
  const Pair pair = connect(IBV_QPT_RC);
  ibv_mr* region = b.make_mr(64, 16, kAllAccess);
  b.word(72) = 5;
  Request request = fetch_add(a.sge(kResult, 8), b, 72, 1);
  request.rkey = region->rkey;
  send(pair.a, request);
  await_success(a.send_cq(), "an atomic on the last word of a region");
  EXPECT_EQ(b.word(72), 6u);
}

class Misaligned : public Rig, public testing::WithParamInterface<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(, Misaligned, testing::Values(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP),
                         [](const auto& which) { return std::string(opcode_name(which.param)); });

// Section 9.4.5: an address that is not a multiple of 8 is an invalid request.
TEST_P(Misaligned, AtomicsAreRefused) {
  const Pair pair = connect(IBV_QPT_RC);
  const Request request{.opcode = GetParam(),
                        .sges = {a.sge(4096, 8)},
                        .id = 5,
                        .remote = b.address(68),
                        .rkey = b.mr()->rkey,
                        .compare_add = 0,
                        .swap = 1};
  if (deviates("misaligned-atomic-refused-by-the-post")) {
    EXPECT_EQ(post(pair.a, {request}).error, EINVAL);
  } else {
    send(pair.a, request);
    EXPECT_EQ(await_status(a.send_cq(), IBV_WC_REM_INV_REQ_ERR, "a misaligned atomic").wr_id, 5u);
  }
  EXPECT_TRUE(is_zero(b.memory(64), 16));
}

// Requests of one QP are carried out in the order of posting.
TEST_F(Atomics, OfOneQpAreInOrder) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(64) = 0;
  std::vector<Request> list;
  for (std::size_t i = 0; i < 12; ++i) {
    list.push_back(fetch_add(a.sge(kResult + 8 * i, 8), b, 64, 1));
    list.back().id = i;
  }
  EXPECT_EQ(post(pair.a, list).error, 0);
  EXPECT_EQ(await(a.send_cq(), 12, "twelve fetch-and-adds").size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(a.word(kResult + 8 * i), i);
  EXPECT_EQ(b.word(64), 12u);
}

TEST_F(Atomics, MixWithReadsAndWritesInOrder) {
  const Pair pair = connect(IBV_QPT_RC);
  a.word(0) = 40;
  EXPECT_EQ(post(pair.a, {write_to(a.sge(0, 8), b, 64), fetch_add(a.sge(kResult, 8), b, 64, 2),
                          read_of(a.sge(kResult + 8, 8), b, 64)})
                .error,
            0);
  const std::vector<ibv_wc> done = await(a.send_cq(), 3, "a WRITE, a fetch-and-add and a READ of one word");
  EXPECT_THAT(statuses(done), testing::Each(IBV_WC_SUCCESS));
  EXPECT_EQ(a.word(kResult), 40u);
  EXPECT_EQ(a.word(kResult + 8), 42u);
}

// Two QPs add to one counter at once: no addition is lost, and each saw another value.
TEST_F(Atomics, OfTwoQpsLoseNothing) {
  const Pair first = connect(IBV_QPT_RC);
  const Pair second = connect(IBV_QPT_RC);
  b.word(64) = 0;
  constexpr std::size_t kEach = 10;
  for (std::size_t i = 0; i < kEach; ++i) {
    send(first.a, fetch_add(a.sge(kResult + 16 * i, 8), b, 64, 1));
    send(second.a, fetch_add(a.sge(kResult + 16 * i + 8, 8), b, 64, 1));
  }
  EXPECT_EQ(await(a.send_cq(), 2 * kEach, "fetch-and-adds of two QPs").size(), 2 * kEach);
  EXPECT_EQ(b.word(64), 2 * kEach);
  std::vector<std::uint64_t> seen;
  for (std::size_t i = 0; i < 2 * kEach; ++i) seen.push_back(a.word(kResult + 8 * i));
  std::ranges::sort(seen);
  for (std::size_t i = 0; i < 2 * kEach; ++i) EXPECT_EQ(seen[i], i);
}

// One of many compare-and-swaps from zero wins.
TEST_F(Atomics, OneTakesALock) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 4; ++i) pairs.push_back(connect(IBV_QPT_RC));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    send(pairs[i].a, compare_swap(a.sge(kResult + 8 * i, 8), b, 64, 0, i + 1));
  }
  EXPECT_EQ(await(a.send_cq(), pairs.size(), "compare-and-swaps of four QPs").size(), pairs.size());
  const std::uint64_t owner = b.word(64);
  ASSERT_GE(owner, 1u);
  ASSERT_LE(owner, pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) EXPECT_EQ(a.word(kResult + 8 * i), i + 1 == owner ? 0 : owner);
}

TEST_F(Atomics, ConcernOtherWordsNotAtAll) {
  const Pair first = connect(IBV_QPT_RC);
  const Pair second = connect(IBV_QPT_RC);
  for (std::uint64_t i = 0; i < 5; ++i) {
    send(first.a, fetch_add(a.sge(kResult, 8), b, 64, 1));
    send(second.a, fetch_add(a.sge(kResult + 8, 8), b, 72, 10));
  }
  EXPECT_EQ(await(a.send_cq(), 10, "fetch-and-adds on neighbours").size(), 10u);
  EXPECT_EQ(b.word(64), 5u);
  EXPECT_EQ(b.word(72), 50u);
}

TEST_F(Atomics, OneOutstandingAtATimeAllowsMany) {
  const Pair pair = connect(IBV_QPT_RC, {.max_rd_atomic = 1});
  for (int i = 0; i < 10; ++i) send(pair.a, fetch_add(a.sge(kResult, 8), b, 64, 3));
  EXPECT_EQ(await(a.send_cq(), 10, "fetch-and-adds one by one").size(), 10u);
  EXPECT_EQ(b.word(64), 30u);
}

// A thread of the target sees the result by looking at memory.
TEST_F(Atomics, AreSeenByAThreadThatPollsMemory) {
  const Pair pair = connect(IBV_QPT_RC);
  fabric().watch(b.memory(64), 8);
  send(pair.a, fetch_add(a.sge(kResult, 8), b, 64, 77));
  await_until([&] { return *static_cast<volatile std::uint64_t*>(&b.word(64)) == 77; }, "the sum to be seen in memory");
}

TEST_F(Atomics, UnsignaledHaveNoCompletion) {
  const Pair pair = connect(IBV_QPT_RC);
  Request quiet = fetch_add(a.sge(kResult, 8), b, 64, 1);
  quiet.flags = 0;
  Request loud = fetch_add(a.sge(kResult + 8, 8), b, 64, 1);
  loud.id = 9;
  EXPECT_EQ(post(pair.a, {quiet, quiet, loud}).error, 0);
  EXPECT_EQ(await_success(a.send_cq(), "the signaled one").wr_id, 9u);
  EXPECT_EQ(a.word(kResult + 8), 2u);
  EXPECT_TRUE(poll(a.send_cq()).empty());
}

}  // namespace
}  // namespace verbscope::conformance
