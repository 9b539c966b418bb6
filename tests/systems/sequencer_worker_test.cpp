// The worker's loop of `sequencer --design herd` against a device that executes at once; the test plays the clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "systems/sequencer/herd_loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"
#include "tests/systems/answering_queues.hpp"

namespace verbscope {
namespace {

using test::AnsweringQueues;
using test::ExecutingDevice;
using test::ScriptedNode;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kClients = 4;
constexpr std::uint32_t kSlots = 2;
constexpr std::uint32_t kDepth = 8;

// An answer as it was posted.
struct Sent {
  std::uint32_t to = 0;  // client
  std::uint64_t value = 0;
  std::uint32_t tag = 0;
  bool operator==(const Sent&) const = default;
};

// A worker with two UD QPs on each of two ports; client c is on port c % 2.
struct HerdServerEnd {
  SlotLayout places{.servers = 2,
                    .clients = kClients,
                    .window = kSlots,
                    .request_bytes = kHerdRequestBytes,
                    .begin = kCacheLine.value};
  std::vector<std::uint64_t> region = std::vector<std::uint64_t>(places.bytes() / 8);
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  RunEnd end;
  AnsweringQueues answering{device, 4, kDepth, 4};
  std::vector<SendQueue>& queues = answering.queues;
  std::vector<ResponsePort> ports;
  std::vector<SlotClient> clients = std::vector<SlotClient>(kClients);
  std::vector<ibv_send_wr*> collected = std::vector<ibv_send_wr*>(kClients * kSlots);
  HerdWorker state;
  std::vector<Sent> sent;

  explicit HerdServerEnd(bool batching) {
    ports = {ResponsePort(std::span(queues).first(2)), ResponsePort(std::span(queues).last(2))};
    for (std::uint32_t c = 0; c < kClients; ++c) {
      clients[c].to.remote_qpn = c;
      clients[c].port = &ports[c % 2];
    }
    state.cq = device.cq();
    state.queues = queues;
    state.ports = ports;
    state.clients = clients;
    state.collected = collected;
    state.counter = region.data();
    state.thread = 1;
    state.place_slots(reinterpret_cast<std::byte*>(region.data()), places);
    state.batching = batching;
    state.max_batch = 16;
    control.phase = Phase::measure;
    device.after = [this](const ibv_send_wr& wr) {
      sent.push_back({wr.wr.ud.remote_qpn, *reinterpret_cast<std::uint64_t*>(wr.sg_list->addr), be32toh(wr.imm_data)});
    };
    node.on_idle = [this] { control.quit = true; };
  }

  void ask(std::uint32_t client, std::uint64_t number) {
    region[places.slot_end(1, client, number) / 8 - 1] = kHerdRequest;
  }
  void ask_again(std::uint32_t client, std::uint64_t number) {
    const std::uint64_t at = places.retry_number(1, client, number) / 8;
    region[at - 1] = kHerdRequest;
    region[at] = retry_word(number);
    ++region[places.bell(1) / 8];
  }
  // One pass over slots and retry slots.
  std::vector<Sent> pass() {
    sent.clear();
    begin_pass(state, control);
    EXPECT_GE(serve(node, state, end), 0);
    return sent;
  }
};

TEST(HerdWorker, AnswersEachRequestOnceWithTheNextValue) {
  HerdServerEnd worker(false);
  worker.ask(0, 0);
  worker.ask(2, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{0, 0, tag_of(1, 0)}, Sent{2, 1, tag_of(1, 0)}));
  EXPECT_THAT(worker.pass(), IsEmpty());
  worker.ask(0, 1);
  worker.ask(0, 2);                                                   // in the slot of number 0
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{0, 2, tag_of(1, 1)}));  // one of each client in a pass
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{0, 3, tag_of(1, 2)}));
  EXPECT_EQ(worker.region[0], 4u);
}

TEST(HerdWorker, ABatchIsOneListForEachPort) {
  HerdServerEnd worker(true);
  for (std::uint32_t c = 0; c < 3; ++c) worker.ask(c, 0);
  // Clients 0 and 2 are on the first port; values in the order in which the requests were found.
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{0, 0, tag_of(1, 0)}, Sent{2, 2, tag_of(1, 0)}, Sent{1, 1, tag_of(1, 0)}));
  EXPECT_EQ(worker.state.counts.batches.lists[2], 1u);
  EXPECT_EQ(worker.state.counts.batches.lists[1], 1u);
}

TEST(HerdWorker, PostsAtMostMaxBatchResponsesPerDoorbell) {
  HerdServerEnd worker(true);
  worker.state.max_batch = 1;
  for (std::uint32_t c = 0; c < kClients; ++c) worker.ask(c, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{0, 0, tag_of(1, 0)}, Sent{2, 2, tag_of(1, 0)}, Sent{1, 1, tag_of(1, 0)},
                                         Sent{3, 3, tag_of(1, 0)}));
  EXPECT_EQ(worker.state.counts.batches.lists[1], 4u);
}

TEST(HerdWorker, UsesTheQpsOfAPortInTurn) {
  for (const bool batching : {false, true}) {
    HerdServerEnd worker(batching);
    std::vector<std::uint64_t> used;
    worker.device.after = [&](const ibv_send_wr& wr) { used.push_back(wr.wr_id & 0xffff); };
    for (std::uint64_t n = 0; n < 3; ++n) {
      worker.ask(1, n);
      worker.pass();
    }
    EXPECT_THAT(used, ElementsAre(2, 3, 2));
  }
}

TEST(HerdWorker, LeavesARequestWhenItsQueueIsFull) {
  HerdServerEnd worker(true);
  for (SendQueue& queue : worker.queues) queue.room = 1;
  worker.ask(0, 0);
  worker.ask(2, 0);
  EXPECT_EQ(worker.pass().size(), 1u);
  EXPECT_EQ(worker.state.blocked, 1u);
  worker.queues[1].room = 1;  // the turn of the next
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{2, 1, tag_of(1, 0)}));
}

TEST(HerdWorker, BeginsAPassWithTheFirstBlockedClient) {
  HerdServerEnd worker(true);
  for (SendQueue& queue : worker.queues) queue.room = 1;
  for (std::uint32_t c = 0; c < kClients; ++c) worker.ask(c, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{0, 0, tag_of(1, 0)}, Sent{1, 1, tag_of(1, 0)}));
  for (const std::uint32_t c : {0, 1}) worker.ask(c, 1);  // they are quick, and yet 2 and 3 are next
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{2, 2, tag_of(1, 0)}, Sent{3, 3, tag_of(1, 0)}));
}

TEST(HerdWorker, BeginsWithTheFirstBlockedRetry) {
  HerdServerEnd worker(true);
  worker.queues[0].room = 1;
  worker.queues[1].room = 1;
  for (const std::uint32_t c : {0, 2}) worker.ask_again(c, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{0, 0, tag_of(1, 0)}));
  worker.ask_again(0, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{2, 1, tag_of(1, 0)}));
}

TEST(HerdWorker, ServesALostRequestFromTheRetrySlot) {
  HerdServerEnd worker(true);
  worker.ask(3, 1);  // number 0 was lost
  EXPECT_THAT(worker.pass(), IsEmpty());
  worker.ask_again(3, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{3, 0, tag_of(1, 0)}, Sent{3, 1, tag_of(1, 1)}));
  EXPECT_THAT(worker.pass(), IsEmpty());
}

TEST(HerdWorker, ServesRetriesFirst) {
  HerdServerEnd worker(true);
  worker.queues[0].room = 1;
  worker.queues[1].room = 0;
  worker.ask(0, 0);
  worker.ask_again(2, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{2, 0, tag_of(1, 0)}));
}

TEST(HerdWorker, ServesARequestAgainAfterALostResponse) {
  HerdServerEnd worker(true);
  worker.ask(3, 0);
  worker.pass();
  worker.ask_again(3, 0);
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{3, 1, tag_of(1, 0)}));
  worker.ask_again(3, 0);  // and that one as well
  EXPECT_THAT(worker.pass(), ElementsAre(Sent{3, 2, tag_of(1, 0)}));
  EXPECT_THAT(worker.pass(), IsEmpty());
}

TEST(HerdWorker, EndsOnTheOrderToQuit) {
  HerdServerEnd worker(true);
  ThreadTally tally;
  worker.ask(0, 0);
  server_loop(worker.node, worker.state, worker.control, tally, serve<ScriptedNode>);
  EXPECT_EQ(tally.end.kind, EndKind::gave_up);
  EXPECT_EQ(worker.state.served, 1u);
}

TEST(HerdWorker, ReportsAFailedAnswer) {
  HerdServerEnd worker(true);
  ThreadTally tally;
  for (SendQueue& queue : worker.queues) queue.index += 10;  // the lanes of the QPs
  std::uint32_t failed = ~0u;
  worker.device.edit = [&](ibv_wc& wc) {
    wc.status = IBV_WC_LOC_QP_OP_ERR;
    failed = std::min(failed, sent_queue(wc.wr_id));
  };
  std::uint64_t number = 0;
  worker.node.on_idle = [&] {
    for (std::uint32_t c = 0; c < kClients; ++c) worker.ask(c, number);
    ++number;
  };
  server_loop(worker.node, worker.state, worker.control, tally, serve<ScriptedNode>);
  EXPECT_EQ(tally.end.kind, EndKind::completion_failed);
  EXPECT_EQ(tally.end.code, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(tally.end.queue, failed + 10);
}

}  // namespace
}  // namespace verbscope
