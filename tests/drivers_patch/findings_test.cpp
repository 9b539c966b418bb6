// Findings of programs with one planted flaw, against bytes counted by hand: PCIe 3.0 with 26 bytes of header a request
// and 22 a completion, completions of 64 bytes, BlueFlame lines of 64.
#include "drivers_patch/findings.hpp"

#include <gtest/gtest.h>

namespace verbscope::driver {
namespace {

// What a program's QP did, without a program.
Summary program(const QpFacts& facts, const Request& request, std::uint64_t count, std::uint64_t signaled) {
  Summary summary{.process = 1,
                  .program = "p",
                  .wire = usual_facts(NicFamily::mlx5, false),
                  .contexts = {},
                  .qps = {},
                  .threads = {},
                  .whole = {}};
  Sums& whole = summary.whole;
  add_request(summary.wire, facts, request, count, whole.sends);
  whole.sends.signaled = signaled;
  if (!request.alone) whole.lists = count / 16;
  whole.pcie = whole.sends.pcie;
  add_doorbells(summary.wire, whole.doorbells(), whole.sends.doorbell_blocks, whole.pcie);
  add_cqes(summary.wire, signaled, whole.pcie);
  QpSummary qp{.facts = facts, .threads = {1}, .sums = whole};
  qp.requests = {{request, count}};
  summary.qps = {qp};
  return summary;
}

constexpr QpFacts kRc{.type = IBV_QPT_RC, .mtu = 4096};
constexpr std::uint64_t kCount = 16000;

Request write(std::uint64_t length, unsigned flags, bool alone) {
  return {.opcode = IBV_WR_RDMA_WRITE, .flags = flags, .elements = 1, .length = length, .alone = alone};
}

TEST(DriverFindings, APayloadThatFitsInlineAndWasNot) {
  const auto findings = find_costs(program(kRc, write(16, 0, true), kCount, kCount / 16));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].name, "not inline");
  EXPECT_EQ(findings[0].requests, kCount);
  // A line of 90 bytes and a completion of 38; inline, the line alone.
  EXPECT_NEAR(findings[0].gain_percent, 100 * (128.0 / 90 - 1), 0.01);
}

TEST(DriverFindings, AnInlinePayloadThatTakesALineMoreByAByte) {
  const auto findings = find_costs(program(kRc, write(29, IBV_SEND_INLINE, true), kCount, kCount / 16));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].name, "a line too long");
  EXPECT_NEAR(findings[0].gain_percent, 100, 0.01);  // 65 bytes in two lines, 64 in one
}

TEST(DriverFindings, CompletionsThatNobodyNeedsSoOften) {
  // In lists: 2.125 bytes of doorbell and 86 of WQE to the adapter; a read of 16 WQEs is two requests, 3.25 bytes each,
  // and a CQE takes 90.
  const auto findings = find_costs(program(kRc, write(28, IBV_SEND_INLINE, false), kCount, kCount));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].name, "completions");
  EXPECT_EQ(findings[0].requests, kCount - kCount / 16);
  EXPECT_NEAR(findings[0].gain_percent, 100 * ((90 + 3.25) / 88.125 - 1), 0.01);
}

TEST(DriverFindings, LongWqesOneByOne) {
  const QpFacts ud{.type = IBV_QPT_UD, .mtu = 4096};
  const Request send{.opcode = IBV_WR_SEND, .flags = IBV_SEND_INLINE, .elements = 1, .length = 60, .alone = true};
  const auto findings = find_costs(program(ud, send, kCount, kCount / 16));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].name, "one by one");
  EXPECT_NEAR(findings[0].gain_percent, 100 * (180 / (2.125 + 172) - 1), 0.01);
}

TEST(DriverFindings, NothingOfCleanPrograms) {
  EXPECT_TRUE(find_costs(program(kRc, write(28, IBV_SEND_INLINE, false), kCount, kCount / 16)).empty());
  EXPECT_TRUE(find_costs(program(kRc, write(4096, 0, false), kCount, kCount / 16)).empty());
  EXPECT_TRUE(find_costs(program(kRc, {.opcode = IBV_WR_RDMA_READ, .elements = 1, .length = 4096}, kCount, kCount / 16))
                  .empty());
}

TEST(DriverFindings, NothingWhereTheAdapterIsNotKnown) {
  Summary unknown = program(kRc, write(16, 0, true), kCount, kCount);
  unknown.wire.known = false;
  EXPECT_TRUE(find_costs(unknown).empty());
}

}  // namespace
}  // namespace verbscope::driver
