// The client's loop of `sequencer --design herd` against a device that executes at once; the test plays the workers.
#include "systems/sequencer/herd_client.hpp"

#include <gtest/gtest.h>

#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;

constexpr std::uint32_t kClientSlots = 2;

// A client of two workers, which the test plays: it answers what `answer` says.
struct HerdClientEnd {
  HerdPlaces places{.workers = 2, .clients = 4, .slots = kClientSlots};
  std::vector<std::uint64_t> region = std::vector<std::uint64_t>(places.bytes() / 8);
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  ValueAudit audit{0};
  HerdWrites writes;
  std::array<ibv_sge, 3> segments{};
  std::vector<Asked> asked = std::vector<Asked>(2 * kClientSlots);
  std::vector<HerdLane> lanes;
  std::vector<ibv_recv_wr> recvs = std::vector<ibv_recv_wr>(4);
  std::vector<ibv_sge> recv_segments = std::vector<ibv_sge>(4);
  std::vector<std::uint64_t> bodies = std::vector<std::uint64_t>(4);
  std::array<SendQueue, 1> queues;
  ClientState state;
  HerdAsker asker;
  std::deque<std::uint32_t> tags;  // immediates of the answers to come
  std::uint64_t value = 0;

  HerdClientEnd()
      : queues{{{.qp = device.add_qp(), .depth = 16, .room = 16, .signal_every = 4}}},
        state{{.cq = device.cq(), .queues = queues, .retry_after = Picos(50'000), .goal = 20}, Receipts(audit)} {
    prebuild(writes.ask, segments[0], writes.word);
    prebuild(writes.retry, segments[1], writes.retry_word);
    prebuild(writes.ring, segments[2], writes.bell_word);
    const auto base = reinterpret_cast<std::uint64_t>(region.data());
    for (std::uint32_t w = 0; w < 2; ++w) {
      HerdLane& lane = lanes.emplace_back();
      lane.slots = std::span(asked).subspan(std::size_t{w} * kClientSlots, kClientSlots);
      lane.first_slot = base + places.slot(w, 1, 0);
      lane.retry_slot = base + places.retry(w, 1);
      lane.bell = base + places.bell(w);
    }
    for (std::uint32_t j = 0; j < 4; ++j) {
      recv_segments[j] = {reinterpret_cast<std::uint64_t>(&bodies[j]), 8, 1};
      recvs[j].wr_id = j;
      recvs[j].sg_list = &recv_segments[j];
      recvs[j].num_sge = 1;
    }
    asker.state = &state;
    asker.lanes = lanes;
    asker.writes = &writes;
    asker.recvs = {.ring = {.qp = device.add_qp(),
                            .ring = recvs.data(),
                            .length = static_cast<std::uint32_t>(recvs.size()),
                            .payloads = reinterpret_cast<std::byte*>(bodies.data()),
                            .stride = 8}};
    asker.client = 1;
    asker.outstanding = kClientSlots;
    asker.choice = Choice(2, true, 7, 0);
    control.phase = Phase::measure;
    device.edit = [this](ibv_wc& wc) {
      if ((wc.wr_id & kSendId) != 0) return;
      wc.imm_data = htobe32(tags.front());
      wc.wc_flags = IBV_WC_WITH_IMM;
      tags.pop_front();
    };
  }

  static void prebuild(ibv_send_wr& wr, ibv_sge& segment, std::uint64_t& word) {
    segment = {reinterpret_cast<std::uint64_t>(&word), 8, 0};
    wr.wr_id = send_id(0);
    wr.sg_list = &segment;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
  }

  void answer(std::uint32_t worker, std::uint64_t number) {
    tags.push_back(tag_of(worker, number));
    device.deliver(&value, 8);
    ++value;
  }
  std::uint64_t word(std::uint64_t offset) const { return region[offset / 8]; }
  void run() { client_loop(node, asker, state, control, tally); }
};

TEST(HerdClient, AsksAllWorkersAndTakesTheAnswers) {
  HerdClientEnd client;
  std::array<std::uint64_t, 2> served{};
  client.node.on_idle = [&] {
    for (std::uint32_t w = 0; w < 2; ++w) {
      if (client.word(client.places.slot(w, 1, served[w])) == request_word(served[w])) client.answer(w, served[w]++);
    }
  };
  client.run();
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_EQ(client.tally.interval.end_ops - client.tally.interval.begin_ops, 20u);
  EXPECT_EQ(client.state.receipts.answers, client.state.receipts.asked);
  EXPECT_EQ(client.audit.noted(client.value), client.value);
  EXPECT_GT(served[0], 0u);
  EXPECT_GT(served[1], 0u);
  EXPECT_EQ(client.state.receipts.retries, 0u);
}

TEST(HerdClient, PostsARecvBeforeItAsks) {
  HerdClientEnd client;
  client.device.after = [&](const ibv_send_wr&) { EXPECT_EQ(client.device.recvs.size(), client.asker.open()); };
  client.node.on_idle = [&] { client.control.quit = true; };
  client.run();
  EXPECT_EQ(client.asker.open(), kClientSlots);
}

TEST(HerdClient, AsksAgainForWhatDoesNotCome) {
  HerdClientEnd client;
  client.asker.lanes = std::span(client.lanes).first(1);
  client.asker.choice = Choice(1, true, 7, 0);
  client.state.goal = 1;
  std::uint64_t served = 0;
  client.node.on_idle = [&] {
    if (served == 0) {
      if (client.word(client.places.retry(0, 1)) != request_word(0, 1)) return;
      EXPECT_NE(client.word(client.places.bell(0)), 0u);
      client.answer(0, served);  // this one was late, not lost
    }
    if (client.word(client.places.slot(0, 1, served)) == request_word(served)) client.answer(0, served++);
  };
  client.run();
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_GE(client.state.receipts.retries, 1u);
  EXPECT_EQ(client.state.receipts.surplus, 1u);
  EXPECT_EQ(client.state.receipts.repeated, 0u);
}

TEST(HerdClient, AsksAgainWithRoomForOneWriteAtATime) {
  HerdClientEnd client;
  SendQueue& queue = client.queues[0];
  queue.depth = queue.room = queue.signal_every = queue.to_signaled =
      3;  // two requests, of which no completion tells, leave room for one
  client.asker.lanes = std::span(client.lanes).first(1);
  client.asker.choice = Choice(1, true, 7, 0);
  client.state.goal = 1;
  std::uint64_t served = 0;
  int idle = 0;
  client.node.on_idle = [&] {
    client.control.quit = ++idle > 1000;
    if (client.word(client.places.bell(0)) == 0) return;
    EXPECT_EQ(client.word(client.places.retry(0, 1)) % kRetryNumbers, 1u);
    while (client.word(client.places.slot(0, 1, served)) == request_word(served)) client.answer(0, served++);
  };
  client.run();
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_EQ(client.state.receipts.answers, client.state.receipts.asked);
}

TEST(HerdClient, NoticesAValueThatSomebodyHad) {
  HerdClientEnd client;
  client.state.goal = 3;
  client.audit.note(1);
  std::array<std::uint64_t, 2> served{};
  client.node.on_idle = [&] {
    for (std::uint32_t w = 0; w < 2; ++w) {
      if (client.word(client.places.slot(w, 1, served[w])) == request_word(served[w])) client.answer(w, served[w]++);
    }
  };
  client.run();
  EXPECT_EQ(client.state.receipts.repeated, 1u);
}

}  // namespace
}  // namespace verbscope
