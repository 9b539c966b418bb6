// Programs on simulated clusters, each with one planted flaw. The first finding is that flaw, and fixing it
// raises the rate as predicted. Predictions are computed from the trace; rates are simulated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/trace/findings.hpp"
#include "tests/harness/traced_program.hpp"

namespace verbscope {
namespace {

using test::Knobs;
using test::Ran;

struct Flawed {
  const char* finding;
  Knobs flawed, mended;
};

// Changes a copy.
template <class Change>
Knobs with(Knobs knobs, Change change) {
  change(knobs);
  return knobs;
}

std::vector<Flawed> programs() {
  std::vector<Flawed> all;
  const auto add = [&all](const char* finding, const Knobs& mended, auto&& flaw) {
    all.push_back({finding, with(mended, flaw), mended});
  };
  // Datagrams with two lines of inline payload, in lists with one completion each.
  const Knobs datagrams = with({}, [](Knobs& k) { k.size = 60; });
  add("one by one", with(datagrams, [](Knobs& k) { k.qps = 8; }), [](Knobs& k) { k.list = 1; });
  add("not inline", with(datagrams, [](Knobs& k) { k.cluster = "cx6", k.size = 32; }),
      [](Knobs& k) { k.inlined = false; });
  add("a line too long", datagrams, [](Knobs& k) { k.size = 61; });
  add("completions", with(datagrams, [](Knobs& k) { k.qps = 8; }), [](Knobs& k) { k.signal_every = 1; });
  add("RECVs one by one", with(datagrams, [](Knobs& k) { k.receives = true, k.qps = 16; }),
      [](Knobs& k) { k.recv_list = 1; });
  add("too many QPs",
      with({},
           [](Knobs& k) {
             k.cluster = "cx3", k.size = 28, k.qps = 4, k.list = k.turn = 1, k.run = std::chrono::milliseconds(4);
           }),
      [](Knobs& k) { k.qps = 256, k.window = k.signal_every = 4; });
  add("empty polls", with(datagrams, [](Knobs& k) { k.qps = 16; }), [](Knobs& k) { k.cqs = 16; });
  const Knobs atomics = with(
      {}, [](Knobs& k) { k.type = IBV_QPT_RC, k.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, k.size = 8, k.inlined = false; });
  add("atomic addresses", atomics, [](Knobs& k) { k.addresses = 1; });
  add("READs at once",
      with(atomics, [](Knobs& k) { k.opcode = IBV_WR_RDMA_READ, k.cluster = "cx", k.mtu = IBV_MTU_2048, k.size = 32; }),
      [](Knobs& k) { k.reads_at_once = 1; });
  add("shared registers", with(datagrams, [](Knobs& k) { k.threads = 8, k.spare_qps = 4, k.size = 32; }),
      [](Knobs& k) { k.registers = 5; });
  add("registrations", datagrams, [](Knobs& k) { k.registers_each = true; });
  add("cut badly",
      with(datagrams,
           [](Knobs& k) {
             k.type = IBV_QPT_UC, k.opcode = IBV_WR_RDMA_WRITE, k.mtu = IBV_MTU_256, k.size = 256, k.inlined = false;
           }),
      [](Knobs& k) { k.size = 264; });
  return all;
}

std::string told(const std::vector<TraceFinding>& findings) {
  std::string text;
  for (const TraceFinding& each : findings) {
    text += fmt::format("{} {:+.1f} % then {}; ", each.name, each.gain_percent, words_for(each.bound));
  }
  return text;
}

class TracedProgram : public testing::TestWithParam<std::size_t> {
 protected:
  const Flawed it = programs()[GetParam()];
};

TEST_P(TracedProgram, FixingTheFirstFindingGivesThePredictedGain) {
  const Ran flawed = test::run_program(it.flawed), mended = test::run_program(it.mended);
  const auto findings = find_costs(flawed.program, load_profile(it.flawed.cluster));
  SCOPED_TRACE(fmt::format("{}: {:.2f} Mops, mended {:.2f}; findings: {}", it.finding, flawed.mops, mended.mops,
                           told(findings)));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].name, it.finding);
  EXPECT_NEAR(mended.mops / flawed.mops / (1 + findings[0].gain_percent / 100), 1, 0.2);
}

TEST_P(TracedProgram, AFixedProgramHasNoFindingAbove5Percent) {
  const Ran clean = test::run_program(it.mended);
  const auto findings = find_costs(clean.program, load_profile(it.mended.cluster), 5);
  EXPECT_TRUE(findings.empty()) << it.finding << ": " << told(findings);
}

INSTANTIATE_TEST_SUITE_P(, TracedProgram, testing::Range(std::size_t{0}, programs().size()));

}  // namespace
}  // namespace verbscope
