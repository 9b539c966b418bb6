// The worker of `sequencer --design spec`, Spec-S0; the test plays the clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "systems/sequencer/spec_loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;

constexpr std::uint64_t kOneHigh = std::uint64_t{1} << 32;  // one more in the high bits
constexpr std::uint32_t kLidOfSecond = 2;

// A worker with one QP and two clients, of which the second has the same QP number on another machine.
struct SpecServerEnd {
  static constexpr std::uint32_t kDepth = 64;

  ExecutingDevice device;
  ScriptedNode node;
  RunEnd end;
  std::vector<ibv_send_wr> requests = std::vector<ibv_send_wr>(kDepth);
  std::vector<ibv_sge> segments = std::vector<ibv_sge>(kDepth);
  std::vector<std::uint64_t> bodies = std::vector<std::uint64_t>(kDepth);
  std::vector<SendQueue> queues;
  std::vector<ibv_recv_wr> ring = std::vector<ibv_recv_wr>(32);
  std::vector<RecvLane> recvs;
  std::vector<std::uint32_t> reserved = std::vector<std::uint32_t>(1);
  std::vector<ResponseTarget> clients = std::vector<ResponseTarget>(2);
  QpIndex qps{{{.qpn = 9, .lid = 1}, {.qpn = 9, .lid = kLidOfSecond}}};
  std::uint64_t counter = 0;
  SpecWorker state;
  struct Ask {
    std::uint16_t lid;
    std::uint32_t guess;
  };
  std::deque<Ask> asks;

  explicit SpecServerEnd(bool batching) {
    for (std::uint32_t j = 0; j < kDepth; ++j) {
      segments[j] = {reinterpret_cast<std::uint64_t>(&bodies[j]), 8, 0};
      requests[j].sg_list = &segments[j];
      requests[j].wr_id = send_id(0);
    }
    ibv_qp* const qp = device.add_qp();
    queues.push_back({.qp = qp, .depth = kDepth, .signal_every = kDepth, .ring = requests});
    for (std::uint32_t j = 0; j < 32; ++j) {
      ring[j].wr_id = recv_id(0, j);
      ring[j].next = j % 16 == 15 ? nullptr : &ring[j + 1];
    }
    recvs.push_back({.qp = qp, .ring = ring.data(), .length = 32, .list = 16});
    post_next_recvs(recvs[0]);
    post_next_recvs(recvs[0]);
    clients[0].to.remote_qpn = 100;
    clients[1].to.remote_qpn = 101;
    state.cq = device.cq();
    state.queues = queues;
    state.recvs = recvs;
    state.reserved = reserved;
    state.clients = clients;
    state.qps = &qps;
    state.waiting.resize(32);
    state.counter = &counter;
    state.batching = batching;
    state.max_batch = 16;
    state.measured = true;
    device.edit = [this](ibv_wc& wc) {
      if ((wc.wr_id & kSendId) != 0) return;
      wc.src_qp = 9;
      wc.slid = asks.front().lid;
      wc.imm_data = htobe32(asks.front().guess);
      wc.wc_flags = IBV_WC_WITH_IMM;
      asks.pop_front();
    };
  }

  void ask(std::uint16_t lid, std::uint32_t guess) {
    asks.push_back({lid, guess});
    device.deliver(nullptr, 0);
  }
  void pass() {
    EXPECT_GE(take_requests(state, end), 0);
    EXPECT_TRUE(answer_waiting(node, state, end));
  }
};

TEST(SpecWorker, ConfirmsAGuessWithTheLowBits) {
  SpecServerEnd worker(true);
  worker.counter = 3 * kOneHigh + 17;
  worker.ask(kLidOfSecond, 3);
  worker.pass();
  ASSERT_EQ(worker.device.requests.size(), 1u);
  const ibv_send_wr& answer = worker.device.requests[0];
  EXPECT_EQ(answer.opcode, IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(answer.num_sge, 0);
  EXPECT_EQ(be32toh(answer.imm_data), 17u);
  EXPECT_EQ(answer.wr.ud.remote_qpn, 101u);
  EXPECT_EQ(worker.state.corrections, 0u);
}

TEST(SpecWorker, CorrectsAWrongGuessWithAllOfTheValue) {
  SpecServerEnd worker(true);
  worker.counter = kOneHigh - 1;
  worker.ask(1, 0);
  worker.ask(1, 0);  // the value of this one has other high bits
  worker.pass();
  ASSERT_EQ(worker.device.requests.size(), 2u);
  EXPECT_EQ(worker.device.requests[0].num_sge, 0);
  const ibv_send_wr& correction = worker.device.requests[1];
  EXPECT_EQ(correction.opcode, IBV_WR_SEND);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(correction.sg_list->addr), kOneHigh);
  EXPECT_EQ(worker.state.corrections, 1u);
}

TEST(SpecWorker, PostsOneListOrOneByOne) {
  for (const bool batching : {false, true}) {
    SpecServerEnd worker(batching);
    for (int i = 0; i < 5; ++i) worker.ask(1, 0);
    worker.pass();
    EXPECT_EQ(worker.state.counts.batches.lists[batching ? 5 : 1], batching ? 1u : 5u);
    EXPECT_EQ(worker.counter, 5u);
  }
}

TEST(SpecWorker, PostsRecvsAListAtATime) {
  SpecServerEnd worker(true);
  for (int i = 0; i < 15; ++i) worker.ask(1, 0);
  worker.pass();
  EXPECT_EQ(worker.device.recvs.size(), 32u - 15);
  worker.ask(1, 0);
  worker.pass();
  EXPECT_EQ(worker.device.recvs.size(), 32u);
}

TEST(SpecWorker, KeepsRequestsUntilThereIsRoomToAnswer) {
  SpecServerEnd worker(true);
  worker.queues[0].room = 2;
  for (int i = 0; i < 3; ++i) worker.ask(1, 0);
  worker.pass();
  EXPECT_EQ(worker.counter, 2u);
  EXPECT_EQ(worker.state.tail - worker.state.head, 1u);
  worker.queues[0].room = 1;
  worker.pass();
  EXPECT_EQ(worker.counter, 3u);
}

TEST(SpecWorker, PostsNoRecvAgainBeforeItsRequestIsAnswered) {
  SpecServerEnd worker(true);
  worker.queues[0].room = 0;
  for (int i = 0; i < 32; ++i) worker.ask(1, 0);
  worker.pass();
  EXPECT_EQ(worker.state.tail - worker.state.head, 32u);  // all that there is room for
  EXPECT_THAT(worker.device.recvs, testing::IsEmpty());   // so nobody can ask for more
  worker.queues[0].room = 16;
  worker.pass();
  EXPECT_EQ(worker.device.recvs.size(), 16u);
}

}  // namespace
}  // namespace verbscope
