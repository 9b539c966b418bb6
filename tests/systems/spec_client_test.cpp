// A client of `sequencer --design spec`, Spec-S0; the test plays the workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "systems/sequencer/spec_loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;

constexpr std::uint64_t kWrap = std::uint64_t{1} << 32;

TEST(ExtendValue, FindsTheNearestValueWithTheseLowBits) {
  EXPECT_EQ(extend_value(5, 3), 5u);
  EXPECT_EQ(extend_value(3, 5), 3u);
  EXPECT_EQ(extend_value(0, kWrap - 1), kWrap);
  EXPECT_EQ(extend_value(0xffffffff, kWrap), kWrap - 1);
  EXPECT_EQ(extend_value(7, 9 * kWrap + 0xfffffff0), 10 * kWrap + 7);
  for (const std::uint32_t low : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    EXPECT_EQ(extend_value(low, kWrap / 2), low) << "all that the guess 0 stands for";
  }
}

// A client of two QPs, which the test plays: each request is answered when the client has nothing to do.
struct SpecClientEnd {
  static constexpr std::uint32_t kOutstanding = 4;

  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::uint64_t counter;
  ValueAudit audit;
  QpIndex qps{{{.qpn = 20}, {.qpn = 21}}};
  ibv_send_wr request{};
  std::vector<Asked> asked = std::vector<Asked>(2 * kOutstanding);
  std::vector<SpecLane> lanes = std::vector<SpecLane>(2);
  std::vector<ibv_recv_wr> recvs = std::vector<ibv_recv_wr>(8);
  std::vector<ibv_sge> segments = std::vector<ibv_sge>(8);
  std::vector<std::uint64_t> bodies = std::vector<std::uint64_t>(8);
  std::array<SendQueue, 1> queues;
  ClientState state;
  SpecAsker asker;
  struct Answer {
    std::uint32_t from;
    std::uint32_t low;
    bool confirms;
  };
  std::deque<Answer> answers;
  std::deque<ibv_send_wr> asks;
  std::uint64_t corrections = 0;

  explicit SpecClientEnd(std::uint64_t start)
      : counter(start),
        audit(start),
        queues{{{.qp = device.add_qp(), .depth = 16, .room = 16, .signal_every = 4}}},
        state{{{.cq = device.cq(), .goal = 40}, queues, Picos(100'000)}, Receipts(audit)} {
    for (std::uint32_t i = 0; i < 2; ++i) {
      lanes[i].slots = std::span(asked).subspan(std::size_t{i} * kOutstanding, kOutstanding);
      lanes[i].to.remote_qpn = 20 + i;
    }
    for (std::uint32_t j = 0; j < 8; ++j) {
      segments[j] = {reinterpret_cast<std::uint64_t>(&bodies[j]), 8, 1};
      recvs[j].wr_id = j;
      recvs[j].sg_list = &segments[j];
      recvs[j].num_sge = 1;
    }
    request.wr_id = send_id(0);
    request.opcode = IBV_WR_SEND_WITH_IMM;
    asker.state = &state;
    asker.lanes = lanes;
    asker.qps = &qps;
    asker.request = &request;
    asker.recvs = {.ring = {.qp = device.add_qp(),
                            .ring = recvs.data(),
                            .length = static_cast<std::uint32_t>(recvs.size()),
                            .payloads = reinterpret_cast<std::byte*>(bodies.data()),
                            .stride = 8}};
    asker.outstanding = kOutstanding;
    asker.choice = Choice(2, true, 7, 0);
    control.phase = Phase::measure;
    device.after = [this](const ibv_send_wr& wr) { asks.push_back(wr); };
    device.edit = [this](ibv_wc& wc) {
      if ((wc.wr_id & kSendId) != 0) return;
      wc.src_qp = answers.front().from;
      wc.imm_data = htobe32(answers.front().low);
      wc.wc_flags = answers.front().confirms ? unsigned{IBV_WC_WITH_IMM} : 0;
      answers.pop_front();
    };
    node.on_idle = [this] {
      while (!asks.empty()) answer();
    };
  }

  void answer() {
    const ibv_send_wr wr = asks.front();
    asks.pop_front();
    if (device.recvs.empty()) return;  // a datagram that finds no RECV is dropped
    const bool confirms = counter >> 32 == be32toh(wr.imm_data);
    corrections += confirms ? 0 : 1;
    answers.push_back({wr.wr.ud.remote_qpn, static_cast<std::uint32_t>(counter), confirms});
    device.deliver(&counter, confirms ? 0 : 8);
    ++counter;
  }
  void run() { client_loop(node, asker, state, control, tally); }
};

TEST(SpecClient, TakesEveryValueAcrossTheWrapOfTheLowBits) {
  for (const std::uint64_t start : {std::uint64_t{0}, kWrap - 10, 7 * kWrap - 3}) {
    SpecClientEnd client(start);
    client.run();
    EXPECT_EQ(client.tally.end.kind, EndKind::finished);
    EXPECT_EQ(client.audit.noted(client.counter - start), client.counter - start);
    EXPECT_EQ(client.state.receipts.repeated, 0u);
    EXPECT_EQ(client.state.receipts.disordered, 0u);
    EXPECT_EQ(client.state.receipts.fingerprint, fingerprint_of_range(start, client.counter - start));
    // The requests outstanding at the start may all have a wrong guess, and so may those at each wrap.
    EXPECT_LE(client.corrections, 2u * SpecClientEnd::kOutstanding) << start;
  }
}

TEST(SpecClient, ALateAnswerToARequestThatWasSentAgainIsInOrder) {
  SpecClientEnd client(0);
  client.asker.lanes = std::span(client.lanes).first(1);
  client.asker.choice = Choice(1, true, 7, 0);
  client.asker.outstanding = 1;
  const Receipts& receipts = client.state.receipts;
  RunEnd end;
  Picos now{0};
  const auto ask = [&] { ASSERT_TRUE(client.asker.ask(now, end)); };
  const auto take = [&](std::uint64_t value) {
    bool moved = false;
    client.counter = value;
    client.answer();
    ASSERT_EQ(take_responses(client.asker, client.state, 16, now, true, moved, end), 1);
  };
  ask();
  now += client.state.retry_after;
  ASSERT_TRUE(client.asker.ask_again(now, end));
  take(0);                         // the first request's, which was late
  client.state.receipts.next = 6;  // as if another QP had answered 5
  ask();
  take(1);  // the first request's once more: it was sent before 5 came
  EXPECT_EQ(receipts.disordered, 0u);
  ask();
  take(4);  // the second request's, which was sent after 5 had come
  EXPECT_EQ(receipts.disordered, 1u);
}

TEST(SpecClient, ResendsWhenAQpIsSilent) {
  SpecClientEnd client(0);
  client.state.goal = 1;
  client.node.on_idle = [&] {
    while (client.state.receipts.retries > 0 && !client.asks.empty()) client.answer();  // nothing before is heard
  };
  const auto lost = [&] { return client.state.receipts.asked + client.state.receipts.retries; };
  client.run();
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_GE(lost(), SpecClientEnd::kOutstanding + 1);
  EXPECT_EQ(client.state.receipts.repeated, 0u);
}

}  // namespace
}  // namespace verbscope
