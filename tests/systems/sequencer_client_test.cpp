// The client's loop of `sequencer --design herd` against a device that executes at once; the test plays the workers.
#include <gtest/gtest.h>

#include "systems/sequencer/herd_loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;

constexpr std::uint32_t kClientSlots = 2;

// A client of two workers, which the test plays: it answers what `answer` says.
struct HerdClientEnd {
  SlotLayout places{.servers = 2,
                    .clients = 4,
                    .window = kClientSlots,
                    .request_bytes = kHerdRequestBytes,
                    .begin = kCacheLine.value};
  std::vector<std::uint64_t> region = std::vector<std::uint64_t>(places.bytes() / 8);
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  ValueAudit audit{0};
  SlotWriter writer;
  std::uint64_t bell_word = 0;
  std::vector<std::byte> bytes = std::vector<std::byte>(2 * kClientSlots * places.retry_bytes());
  std::vector<HerdAsked> asked = std::vector<HerdAsked>(2 * kClientSlots);
  std::vector<SlotLane<HerdAsked>> lanes;
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
        state{{{.cq = device.cq(), .goal = 20}, queues, Picos(50'000)}, Receipts(audit)} {
    writer.layout = places;
    writer.bell_word = &bell_word;
    writer.client = 1;
    writer.request.sg_list = &writer.request_segment;
    writer.ring_segment = {reinterpret_cast<std::uint64_t>(&bell_word), 8, 0};
    writer.ring.sg_list = &writer.ring_segment;
    for (ibv_send_wr* wr : {&writer.request, &writer.ring}) {
      wr->wr_id = send_id(0);
      wr->num_sge = 1;
      wr->opcode = IBV_WR_RDMA_WRITE;
    }
    for (std::size_t i = 0; i < asked.size(); ++i) {
      asked[i].end = bytes.data() + (i + 1) * places.retry_bytes() - kNumberBytes;
    }
    const auto base = reinterpret_cast<std::uint64_t>(region.data());
    for (std::uint32_t w = 0; w < 2; ++w) {
      SlotLane<HerdAsked>& lane = lanes.emplace_back();
      lane.slots = std::span(asked).subspan(std::size_t{w} * kClientSlots, kClientSlots);
      lane.first_slot = base + places.slot_end(w, 1, 0);
      lane.first_retry = base + places.retry_number(w, 1, 0) + kNumberBytes;
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
    asker.writer = &writer;
    asker.recvs = {.ring = {.qp = device.add_qp(),
                            .ring = recvs.data(),
                            .length = static_cast<std::uint32_t>(recvs.size()),
                            .payloads = reinterpret_cast<std::byte*>(bodies.data()),
                            .stride = 8}};
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

  void answer(std::uint32_t worker, std::uint64_t number) {
    tags.push_back(tag_of(worker, number));
    device.deliver(&value, 8);
    ++value;
  }
  std::uint64_t word(std::uint64_t offset) const { return region[offset / 8]; }
  // The worker takes the request from its slot, if it is there.
  bool take_request(std::uint32_t worker, std::uint64_t number) {
    return std::exchange(region[places.slot_end(worker, 1, number) / 8 - 1], 0) != 0;
  }
  void run() { client_loop(node, asker, state, control, tally); }
};

TEST(SequencerHerdClient, AsksAllWorkersAndTakesTheAnswers) {
  HerdClientEnd client;
  std::array<std::uint64_t, 2> served{};
  client.node.on_idle = [&] {
    for (std::uint32_t w = 0; w < 2; ++w) {
      if (client.take_request(w, served[w])) client.answer(w, served[w]++);
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

TEST(SequencerHerdClient, PostsARecvBeforeItAsks) {
  HerdClientEnd client;
  client.device.after = [&](const ibv_send_wr&) { EXPECT_EQ(client.device.recvs.size(), client.asker.open()); };
  client.node.on_idle = [&] { client.control.quit = true; };
  client.run();
  EXPECT_EQ(client.asker.open(), kClientSlots);
}

TEST(SequencerHerdClient, ResendsARequestWithoutAResponse) {
  HerdClientEnd client;
  client.asker.lanes = std::span(client.lanes).first(1);
  client.asker.choice = Choice(1, true, 7, 0);
  client.state.goal = 1;
  std::uint64_t served = 0;
  client.node.on_idle = [&] {
    if (served == 0) {
      if (client.word(client.places.retry_number(0, 1, 0)) != retry_word(0)) return;
      EXPECT_NE(client.word(client.places.bell(0)), 0u);
      client.answer(0, served);  // this one was late, not lost
    }
    if (client.take_request(0, served)) client.answer(0, served++);
  };
  client.run();
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_GE(client.state.receipts.retries, 1u);
  EXPECT_EQ(client.state.receipts.surplus, 1u);
  EXPECT_EQ(client.state.receipts.repeated, 0u);
}

TEST(SequencerHerdClient, ResendsWithRoomForOneWriteAtATime) {
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
    EXPECT_EQ(client.word(client.places.retry_number(0, 1, 0)), retry_word(0));
    while (client.take_request(0, served)) client.answer(0, served++);
  };
  client.run();
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_EQ(client.state.receipts.answers, client.state.receipts.asked);
}

TEST(SequencerHerdClient, CountsAValueThatWasReceivedBefore) {
  HerdClientEnd client;
  client.state.goal = 3;
  client.audit.note(1);
  std::array<std::uint64_t, 2> served{};
  client.node.on_idle = [&] {
    for (std::uint32_t w = 0; w < 2; ++w) {
      if (client.take_request(w, served[w])) client.answer(w, served[w]++);
    }
  };
  client.run();
  EXPECT_EQ(client.state.receipts.repeated, 1u);
}

}  // namespace
}  // namespace verbscope
