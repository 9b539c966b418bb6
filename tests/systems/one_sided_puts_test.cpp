// PUTs of stores whose GETs are one-sided: the server's side against a device that executes at once; the test plays the
// client, and what is lost on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "systems/one_sided/access.hpp"
#include "systems/one_sided/client.hpp"
#include "systems/one_sided/ends.hpp"
#include "systems/one_sided/puts.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(PutLayout, AMessageEndsWhereItsSlotEnds) {
  const PutLayout honest{.value_bytes = 32, .emulated = false, .window = 2};
  EXPECT_EQ(honest.message_bytes(), 32u + 16 + 8);
  EXPECT_EQ(honest.stride(), 64u);
  const PutLayout emulated{.value_bytes = 49, .emulated = true, .window = 2};
  EXPECT_EQ(emulated.message_bytes(), 65u);  // the sizes of value and key, as the paper says
  EXPECT_EQ(emulated.stride(), 128u);
  EXPECT_EQ(emulated.client_bytes(), 256u);
  EXPECT_EQ(emulated.end_of(1), 128u);
  EXPECT_EQ(emulated.end_of(2), 256u);
  EXPECT_EQ(emulated.end_of(3), 128u);
}

TEST(PutPaths, TheSlotsOfAThreadAreContiguousAndDisjoint) {
  const PutPaths paths{
      .layout = {.value_bytes = 32, .emulated = true, .window = 4}, .by_memory = true, .store_bytes = 100};
  std::vector<bool> used(paths.server_bytes(7, 3));
  EXPECT_EQ(used.size(), 128u + 9 * 256);  // three lanes of 4 * 64 bytes for each of three threads
  for (std::uint64_t client = 0; client < 7; ++client) {
    const std::uint64_t begin = paths.slots_of(client, 7, 3);
    if (client >= 3) {
      EXPECT_EQ(begin, paths.slots_of(client - 3, 7, 3) + 256);
    }
    for (std::uint64_t at = begin; at < begin + 256; ++at) {
      EXPECT_FALSE(used.at(at));
      used[at] = true;
    }
  }
}

// Notes the keys that it is given.
struct NotedPuts {
  std::vector<std::uint64_t> keys;
  template <class N>
  bool put(N&, const lookups::KeyHash& key, const std::byte*) {
    keys.push_back(key.low);
    return key.low != 0;
  }
};
struct NotedAccess {
  using Puts = NotedPuts;
};

// A thread of a server with one client, to which it answers into a word.
struct ServerEnd {
  PutLayout layout{.value_bytes = 8, .emulated = false, .window = 2};
  std::vector<std::uint64_t> slots = std::vector<std::uint64_t>(layout.client_bytes() / 8);
  std::uint64_t answer = 0;
  std::vector<std::uint64_t> answers;
  ExecutingDevice device;
  ScriptedNode node;
  RunEnd end;
  NotedPuts puts;
  std::vector<SendQueue> queues;
  std::vector<PutLane> lanes = std::vector<PutLane>(1);
  OneSidedServerState<NotedAccess> state;

  ServerEnd() {
    queues.push_back({.qp = device.add_qp(), .depth = 8, .room = 8, .signal_every = 2});
    lanes[0].slots = reinterpret_cast<std::byte*>(slots.data());
    lanes[0].segment = {reinterpret_cast<std::uint64_t>(&lanes[0].last), 8, 0};
    lanes[0].answer = put_request(lanes[0].segment, 0, true, true, reinterpret_cast<std::uint64_t>(&answer), 0);
    state.cq = device.cq();
    state.queues = queues;
    state.lanes = lanes;
    state.puts = &puts;
    state.layout = layout;
    device.after = [this](const ibv_send_wr&) { answers.push_back(answer); };
  }

  // The client's WRITE of PUT `number` of `key` arrives.
  void arrive(std::uint64_t number, std::uint64_t key, std::uint64_t attempt = 0) {
    std::byte* const at = lanes[0].slots + layout.end_of(number);
    set_put_key(layout, at, {key, key});
    store_word(at - kPutTagBytes, put_tag(number, attempt));
  }
  int pass(bool again = false) { return serve_written(node, state, again, end); }
};

TEST(OneSidedServer, ExecutesPutsInOrderEachOnce) {
  ServerEnd server;
  server.arrive(1, 11);
  server.arrive(2, 22);
  EXPECT_EQ(server.pass(), 1);
  EXPECT_EQ(server.pass(), 1);
  EXPECT_EQ(server.pass(true), 0);
  EXPECT_THAT(server.puts.keys, ElementsAre(11u, 22u));
  EXPECT_THAT(server.answers, ElementsAre(1u, 2u));
  server.arrive(3, 33);
  EXPECT_EQ(server.pass(), 1);
  EXPECT_THAT(server.puts.keys, ElementsAre(11u, 22u, 33u));
}

TEST(OneSidedServer, WaitsForAPutThatWasLost) {
  ServerEnd server;
  server.arrive(2, 22);  // PUT 1 was lost
  EXPECT_EQ(server.pass(true), 0);
  EXPECT_THAT(server.puts.keys, IsEmpty());
  server.arrive(1, 11, 1);
  server.arrive(2, 22, 1);
  EXPECT_EQ(server.pass(), 1);
  EXPECT_EQ(server.pass(), 1);
  EXPECT_THAT(server.puts.keys, ElementsAre(11u, 22u));
}

TEST(OneSidedServer, AnswersAgainWithoutExecutingAgainWhenItsAnswerWasLost) {
  ServerEnd server;
  server.arrive(1, 11);
  server.arrive(2, 22);
  server.pass();
  server.pass();
  server.arrive(1, 11, 1);  // both answers were lost: the client sends both again
  server.arrive(2, 22, 1);
  EXPECT_EQ(server.pass(false), 0);
  EXPECT_EQ(server.pass(true), 1);
  EXPECT_EQ(server.pass(true), 0);
  EXPECT_THAT(server.puts.keys, ElementsAre(11u, 22u));
  EXPECT_EQ(server.answers.back(), 2u);  // which answers the first, too
  EXPECT_EQ(server.state.counts.repeated, 1u);
}

TEST(OneSidedServer, CountsPutsOfMissingKeys) {
  ServerEnd server;
  server.arrive(1, 0);
  EXPECT_EQ(server.pass(), 1);
  EXPECT_EQ(server.state.counts.refused, 1u);
  EXPECT_EQ(server.state.counts.executed, 1u);
}

// Messages by SEND: the one that is next is executed; one before it is answered again; one after a gap is left.
TEST(OneSidedServer, TakesOnlyTheNextMessageBySend) {
  ServerEnd server;
  std::vector<ibv_recv_wr> recvs(4);
  std::vector<std::uint64_t> bodies(4 * server.layout.stride() / 8);
  auto* const begin = reinterpret_cast<std::byte*>(bodies.data());
  server.state.by_memory = false;
  server.lanes[0].recvs = {.qp = server.queues[0].qp,
                           .ring = recvs.data(),
                           .length = 4,
                           .payloads = begin,
                           .stride = server.layout.stride()};
  std::vector<std::byte> message(server.layout.message_bytes());
  const auto arrive = [&](std::uint64_t number, std::uint32_t place) {
    set_put_key(server.layout, message.data() + message.size(), {number * 11, 1});
    const std::uint64_t tag = put_tag(number, 0);
    std::memcpy(message.data() + message.size() - 8, &tag, 8);
    std::memcpy(begin + place * server.layout.stride(), message.data(), message.size());
    return serve_received(server.node, server.state, recv_id(0, place), server.end);
  };
  EXPECT_TRUE(arrive(1, 0));
  EXPECT_TRUE(arrive(3, 1));
  EXPECT_THAT(server.puts.keys, ElementsAre(11u));
  EXPECT_TRUE(arrive(2, 2));
  EXPECT_TRUE(arrive(1, 3));
  EXPECT_THAT(server.puts.keys, ElementsAre(11u, 22u));
  EXPECT_EQ(server.state.counts.repeated, 1u);
  EXPECT_EQ(server.device.recvs.size(), 4u);  // each RECV is posted again
}

}  // namespace
}  // namespace verbscope
