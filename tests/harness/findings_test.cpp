// Findings for programs with one planted flaw, compared with times computed by hand: 10 ns per
// post, 20 per WQE, 30 per BlueFlame line, 40 per doorbell, 15 per poll, 10 per completion. All other costs are 0.
#include "harness/trace/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "harness/trace/explain_trace.hpp"
#include "harness/trace/trace_record.hpp"

namespace verbscope {
namespace {

using driver::QpFacts;
using driver::QueueUse;
using driver::Request;
using driver::Summary;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Picos operator""_ns(unsigned long long ns) {
  return Picos(static_cast<std::int64_t>(ns * 1000));
}

// The profile cib with these costs, fast links and a fast adapter.
Profile round_figures() {
  Profile p = load_profile("cib");
  p.wire.pcie.lane_mb_per_s = 1e6;
  p.wire.port_rate = BytesPerSecond{1e15};
  p.link.mmio_gap = 0_ns;
  p.link.read_tags = 1000000;
  p.host.post_call = 10_ns;
  p.host.post_wqe = 20_ns;
  p.host.wc_line = 30_ns;
  p.host.doorbell = 40_ns;
  p.host.poll_call = 15_ns;
  p.host.poll_cqe = 10_ns;
  p.host.post_recv_call = 10_ns;
  p.host.post_recv_wqe = 5_ns;
  NicProfile& nic = p.nic;
  for (Picos* time : {&nic.doorbell_wqe, &nic.blueflame_wqe, &nic.wqe_block, &nic.gather, &nic.next_packet,
                      &nic.handle_ack, &nic.handle_response, &nic.receive_packet, &nic.receive_dma, &nic.receive_line,
                      &nic.read_request, &nic.read_response, &nic.atomic_packet, &nic.atomic_operation}) {
    *time = 0_ns;
  }
  return p;
}

constexpr std::uint64_t kCount = 1600;

// A QP of a thread that posts `kCount` of these requests, 16 between two polls. Each poll finds one completion.
Summary program(const Request& request, ibv_qp_type type = IBV_QPT_RC, std::uint32_t qps = 1) {
  Summary summary;
  for (std::uint32_t i = 0; i < qps; ++i) {
    summary.qps.push_back({.facts = {.type = type, .mtu = 256}, .threads = {1}, .sums = {}});
    QueueUse use{.qp = i, .thread = 1, .requests = {{request, kCount}}, .atomics = {}};
    use.lists = request.alone ? 0 : kCount / 16;
    use.turns = qps == 1 ? 1 : use.lists;
    use.send_completions = kCount / 16;
    summary.uses.push_back(use);
  }
  summary.poll_uses = {{.thread = 1, .polls = qps * kCount / 16, .polled = qps * kCount / 16}};
  summary.contexts.emplace_back();
  return summary;
}

Request write(std::uint64_t length, unsigned flags, bool alone) {
  return {.opcode = IBV_WR_RDMA_WRITE, .flags = flags, .elements = 1, .length = length, .alone = alone};
}
const Request kClean = write(28, IBV_SEND_INLINE, false);
// CPU time of a clean program: 100 lists, 1600 WQEs, 100 polls and completions.
constexpr double kCleanNs = 100 * (10 + 40) + 1600 * 20 + 100 * (15 + 10);

void expect_first(const Summary& summary, const Profile& profile, const std::string& name, std::uint64_t requests,
                  double before_ns, double after_ns) {
  const auto findings = find_costs(summary, profile);
  ASSERT_FALSE(findings.empty()) << name;
  EXPECT_EQ(findings[0].name, name);
  EXPECT_EQ(findings[0].requests, requests) << name;
  EXPECT_NEAR(findings[0].gain_percent, (before_ns / after_ns - 1) * 100, 0.5) << name;
  // A record contains everything that findings need.
  const auto again = find_costs(program_from_json(program_json(summary), "record"), profile);
  ASSERT_EQ(again.size(), findings.size());
  EXPECT_EQ(again[0].text, findings[0].text);
  EXPECT_EQ(again[0].gain_percent, findings[0].gain_percent);
}

TEST(Findings, ReportsNothingForACleanProgram) {
  EXPECT_THAT(find_costs(program(kClean), round_figures()), IsEmpty());
  const auto limits = limits_of(program(kClean), round_figures());
  ASSERT_FALSE(limits.empty());
  EXPECT_EQ(limits[0].resource, Resource::cpu);
  EXPECT_NEAR(limits[0].seconds * 1e9, kCleanNs, 0.01);
  EXPECT_THAT(find_costs(Summary{}, round_figures()), IsEmpty());
}

TEST(Findings, ReportsRequestsPostedOneByOne) {
  const double alone = 1600 * (10 + 20 + 30) + 100 * (15 + 10);
  expect_first(program(write(28, IBV_SEND_INLINE, true)), round_figures(), "one by one", kCount, alone, kCleanNs);
  // A program that polls a completion per request cannot post lists.
  Summary ping_pong = program(write(28, IBV_SEND_INLINE, true));
  ping_pong.poll_uses[0].polls = ping_pong.poll_uses[0].polled = kCount;
  EXPECT_THAT(find_costs(ping_pong, round_figures()), IsEmpty());
}

TEST(Findings, ReportsPayloadsThatFitInline) {
  Profile profile = round_figures();
  profile.nic.doorbell_wqe = 50_ns;
  profile.nic.gather = 100_ns;
  expect_first(program(write(16, 0, false)), profile, "not inline", kCount, 150, 50);
}

TEST(Findings, ReportsInlinePayloadsOneByteOverALine) {
  Profile profile = round_figures();
  profile.nic.wqe_block = 50_ns;  // 65 bytes take two blocks, 64 bytes one
  expect_first(program(write(29, IBV_SEND_INLINE, false)), profile, "a line too long", kCount, 2 * 50, 50);
}

TEST(Findings, ReportsTooManySignaledCompletions) {
  Summary summary = program(kClean);
  summary.uses[0].send_completions = summary.poll_uses[0].polled = kCount;
  expect_first(summary, round_figures(), "completions", kCount - 100, kCleanNs + 1500 * 10, kCleanNs);
}

// Counts completions of a QP's requests whichever thread polls them.
TEST(Findings, ReportsCompletionsPolledByAnotherThread) {
  Summary summary = program(kClean);
  summary.uses[0].send_completions = 0;
  summary.uses.push_back({.qp = 0, .thread = 2, .requests = {}, .send_completions = kCount, .atomics = {}});
  summary.poll_uses = {{.thread = 2, .polls = kCount, .polled = kCount}};
  expect_first(summary, round_figures(), "completions", kCount - 100, 1600 * (15 + 10), 100 * 50 + 1600 * 20);
}

TEST(Findings, ReportsRecvsPostedOneByOne) {
  Summary summary = program(kClean);
  QueueUse& use = summary.uses[0];
  use.requests.clear();
  use.lists = use.send_completions = 0;
  use.recvs = use.recv_posts = use.received = summary.poll_uses[0].polled = kCount;
  use.received_bytes = kCount * 32;
  const double rest = 1600 * 5 + 100 * 15 + 1600 * 10;
  expect_first(summary, round_figures(), "RECVs one by one", kCount - 100, rest + 1600 * 10, rest + 100 * 10);
}

TEST(Findings, ReportsTooManyDatagramQps) {
  Profile profile = round_figures();
  profile.nic.qp_context_reads = 1;
  profile.nic.qp_context_miss = 1000_ns;
  profile.link.propagation = 100_ns;
  profile.host.memory_read = 300_ns;
  profile.host.memory_read_jitter = 0_ns;
  // The cache holds 100 of 200 QPs: m = 1 - exp(-2 m) has the root 0.7968. One read takes 1500 ns.
  const Request send{.opcode = IBV_WR_SEND, .flags = IBV_SEND_INLINE, .elements = 1, .length = 60, .alone = false};
  expect_first(program(send, IBV_QPT_UD, 200), profile, "too many QPs", 184 * kCount, 100 * 0.79681 * 1500, kCleanNs);
}

TEST(Findings, ReportsEmptyPolls) {
  Summary summary = program(kClean);
  summary.poll_uses[0].empty = 5000;
  summary.poll_uses[0].in_passing = 1500;  // in the other polls it waited
  expect_first(summary, round_figures(), "empty polls", 1500, kCleanNs + 1500 * 15, kCleanNs);
}

TEST(Findings, ReportsAtomicsWithEqualLowAddressBits) {
  Profile profile = round_figures();
  profile.link.propagation = 100_ns;
  profile.host.memory_read = 300_ns;
  profile.host.memory_read_jitter = 0_ns;
  profile.nic.atomic_operation = 20_ns;
  Summary summary = program({.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .elements = 1, .length = 8, .alone = false});
  summary.uses[0].atomics.noted = 80;
  summary.uses[0].atomics.frequent[0] = {.low = 64, .count = 80};
  expect_first(summary, profile, "atomic addresses", 80, 1600 * (500 + 20), kCleanNs);
  profile.nic.atomic_slots = 1;  // all share it in any case
  EXPECT_THAT(find_costs(summary, profile), IsEmpty());
}

TEST(Findings, ReportsReadsThatWaitForOthers) {
  Profile profile = round_figures();
  profile.nic.transmit = 1000_ns;
  profile.fabric.cable = 50_ns;
  profile.fabric.switch_latency = 300_ns;
  profile.link.propagation = 100_ns;
  profile.host.memory_read = 300_ns;
  profile.host.memory_read_jitter = 0_ns;
  Summary summary = program({.opcode = IBV_WR_RDMA_READ, .elements = 1, .length = 8, .alone = false});
  summary.qps[0].facts.reads_at_once = 1;
  summary.uses[0].reads_outstanding = 64;
  const double round_trip = 2 * (1000 + 2 * 50 + 300) + 500;
  expect_first(summary, profile, "READs at once", kCount, 1600 * round_trip, 1600 * round_trip / 16);
  summary.uses[0].reads_outstanding = 1;
  EXPECT_THAT(find_costs(summary, profile), IsEmpty());
}

TEST(Findings, ReportsSharedDoorbellRegisters) {
  Profile profile = round_figures();
  profile.host.line_transfer = 50_ns;
  Summary summary = program(kClean, IBV_QPT_RC, 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    summary.uses[i].thread = i + 1;
    summary.qps[i].facts.doorbell_register = 7;
    summary.qps[i].facts.shared_register = true;
  }
  summary.poll_uses.clear();
  // 400 doorbells; for each, the register moves to another thread while three wait. Plus the thread's own time.
  expect_first(summary, profile, "shared registers", 4 * kCount, 400 * (4 * 50 + 40), kCleanNs - 100 * 25);
  for (QueueUse& use : summary.uses) use.thread = 1;
  EXPECT_THAT(find_costs(summary, profile), IsEmpty());
}

TEST(Findings, ReportsRegistrationsWhileQueuesAreInUse) {
  Profile profile = round_figures();
  profile.host.register_call = 10000_ns;
  profile.host.register_page = 250_ns;
  Summary summary = program(kClean);
  summary.contexts[0].late_registrations = 100;
  summary.contexts[0].late_pages = 200;
  expect_first(summary, profile, "registrations", 100, kCleanNs + 100 * 10000 + 200 * 250, kCleanNs);
}

TEST(Findings, ReportsMessagesWithAShortLastPacket) {
  Profile profile = round_figures();
  profile.nic.receive_packet = 60_ns;
  profile.nic.receive_dma = 40_ns;
  expect_first(program(write(264, 0, false)), profile, "cut badly", kCount, 2 * (60 + 40), 60 + 40);
  EXPECT_THAT(find_costs(program(write(256 + 65, 0, false)), profile), IsEmpty());
}

TEST(Findings, ExplainPrintsLimitsAndFindingsOfARecord) {
  const Request send{.opcode = IBV_WR_SEND, .flags = IBV_SEND_INLINE, .elements = 1, .length = 60, .alone = true};
  Summary summary = program(send, IBV_QPT_UD, 4);
  summary.program = "p";
  const Record record = trace_record(summary, {{"p"}, {"verbscope"}, "auto", nullptr}, "whole", 1);
  EXPECT_TRUE(is_trace(record));
  EXPECT_THROW(explain_trace_text(record, "", 0), UsageError);  // it names no cluster
  const Json json = explain_trace_json(record, "cib");
  const Profile cib = load_profile("cib");
  const auto limits = limits_of(summary, cib);
  const auto findings = find_costs(summary, cib);
  ASSERT_EQ(json.at("limits").size(), limits.size());
  EXPECT_EQ(json.at("limits")[0].at("words").get<std::string>(), words_for(limits[0]));
  const double mops = 4 * kCount / limits[0].seconds * 1e-6;
  EXPECT_NEAR(json.at("limits")[0].at("mops").get<double>(), mops, 1e-9);
  ASSERT_FALSE(findings.empty());
  ASSERT_EQ(json.at("findings").size(), findings.size());
  EXPECT_EQ(json.at("findings")[0].at("name").get<std::string>(), "one by one");
  EXPECT_NEAR(json.at("findings")[0].at("mops").get<double>(), mops * (1 + findings[0].gain_percent / 100), 1e-9);
  EXPECT_THAT(explain_trace_text(record, "cib", 0), HasSubstr("On cib the first limit is CPU of the busiest thread"));
  Record older = record;
  older.result.erase("program");
  EXPECT_THROW(explain_trace_text(older, "cib", 0), Error);
}

}  // namespace
}  // namespace verbscope
