// The life of RPC sessions: opened while endpoints run, failed, closed, and their numbers used again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/systems/rpc_peer.hpp"

namespace verbscope {
namespace {

using test::kStep;
using test::NetworkFaults;
using test::Pair;
using test::Peer;
using test::RpcNetwork;
using testing::Each;
using testing::ElementsAre;

std::vector<RpcStatus> statuses(const Peer& peer) {
  std::vector<RpcStatus> out;
  for (const Peer::Call& call : peer.calls) {
    EXPECT_EQ(call.over, 1);
    out.push_back(call.status);
  }
  return out;
}

// The pair's session 0 exists from the beginning.
TEST(RpcSessions, KeepCallsUntilThePeerHasAnswered) {
  Pair pair({}, {}, 100);
  const SessionName name = pair.client.endpoint.sessions().reserve();
  for (std::uint64_t id = 1; id <= 20; ++id) pair.client.send(name.number, id, 32, 32, 32);
  for (int i = 0; i < 100; ++i) pair.step();
  EXPECT_FALSE(pair.client.endpoint.drained());
  EXPECT_THAT(pair.network.sent, testing::IsEmpty());
  const SessionName remote = pair.server.endpoint.sessions().accept(RpcNetwork::address(0), name);
  pair.client.endpoint.sessions().connect(name.number, RpcNetwork::address(1), remote);
  pair.run(10'000);
  EXPECT_THAT(statuses(pair.client), Each(RpcStatus::answered));
  EXPECT_TRUE(pair.client.endpoint.drained());
}

TEST(RpcSessions, EndTheCallsOfASessionThatNeverOpened) {
  Pair pair({}, {}, 100);
  const SessionName name = pair.client.endpoint.sessions().reserve();
  for (std::uint64_t id = 1; id <= 20; ++id) pair.client.send(name.number, id, 32, 32, 32);
  pair.client.endpoint.sessions().fail(name.number);
  pair.step();
  EXPECT_THAT(statuses(pair.client), Each(RpcStatus::no_answer));
  EXPECT_TRUE(pair.client.endpoint.drained());
}

TEST(RpcSessions, FailAsAWholeAfterTooManyTimeOutsOfACall) {
  Pair pair = test::pair_without_network();
  struct Failures {
    static void note(void* numbers, std::uint16_t session) {
      static_cast<std::vector<std::uint16_t>*>(numbers)->push_back(session);
    }
    std::vector<std::uint16_t> numbers;
  } failures;
  pair.client.endpoint.sessions().on_failure(&Failures::note, &failures.numbers);
  for (std::uint64_t id = 1; id <= 12; ++id) pair.client.send(0, id, 250, 32, 32);
  pair.run(10'000);
  EXPECT_THAT(statuses(pair.client), Each(RpcStatus::no_answer));
  EXPECT_THAT(failures.numbers, ElementsAre(0));
  // Eight calls had slots; the four behind them never had a time-out of their own. Time-outs of 1, 2, 4 and 8 RTOs,
  // each noticed within a tenth of an RTO.
  EXPECT_GE(pair.network.now(), 15 * pair.client.options.rto);
  EXPECT_LE(pair.network.now(), Picos(1'000'000) + 16 * pair.client.options.rto);
  // Later calls end in the next pass.
  pair.client.send(0, 13, 32, 32, 32);
  EXPECT_EQ(pair.client.calls.back().over, 0);
  pair.step();
  EXPECT_EQ(pair.client.calls.back().over, 1);
  EXPECT_EQ(pair.client.calls.back().status, RpcStatus::no_answer);
}

TEST(RpcSessions, EndCallsThatContinuationsMakeInAFailedSession) {
  Pair pair({}, {}, 100);
  pair.client.after = [&pair](const Peer::Call& call) {
    if (call.id < 5) pair.client.send(0, call.id + 1, 32, 32, 32);
  };
  pair.client.send(0, 1, 32, 32, 32);
  pair.client.endpoint.sessions().close(0);
  for (int i = 0; i < 5; ++i) pair.step();
  EXPECT_THAT(statuses(pair.client), ElementsAre(RpcStatus::no_answer, RpcStatus::no_answer, RpcStatus::no_answer,
                                                 RpcStatus::no_answer, RpcStatus::no_answer));
  EXPECT_TRUE(pair.client.endpoint.drained());
}

// With one credit the other calls wait for it when the first continuation closes the session.
TEST(RpcSessions, SendNothingAfterAContinuationHasClosedThem) {
  RpcOptions options;
  options.credits = 1;
  Pair pair({}, options, 100);
  pair.client.after = [&pair](const Peer::Call&) { pair.client.endpoint.sessions().close(0); };
  for (std::uint64_t id = 1; id <= 4; ++id) pair.client.send(0, id, 32, 32, 32);
  for (int i = 0; i < 1000; ++i) pair.step();
  EXPECT_THAT(statuses(pair.client),
              ElementsAre(RpcStatus::answered, RpcStatus::no_answer, RpcStatus::no_answer, RpcStatus::no_answer));
  EXPECT_EQ(pair.server.handled.size(), 1u);
}

// The adapter reads packets 0.9 us after their post. The continuation poisons the request.
TEST(RpcSessions, EndCallsOnlyWhenNoQueueHasTheirPackets) {
  for (const RpcControl control : {RpcControl::none, RpcControl::timely}) {
    RpcOptions options;
    options.control = control;
    options.bypass_limiter = false;
    options.timely.link = BytesPerSecond{options.timely.floor};  // 116 bytes take 7.7 us
    NetworkFaults slow;
    slow.reading = Picos(900'000);
    Pair pair(slow, options, 100);
    for (std::uint64_t id = 1; id <= 12; ++id) pair.client.send(0, id, 250, 32, 32);
    pair.step();
    pair.client.endpoint.sessions().close(0);
    pair.step();
    EXPECT_THAT(statuses(pair.client), Each(RpcStatus::no_answer));
    for (int i = 0; i < 1000; ++i) pair.step();
    EXPECT_EQ(pair.network.changed, 0);
    EXPECT_EQ(pair.client.late_bytes(), 0);
    EXPECT_TRUE(pair.client.endpoint.drained());
  }
}

// No packet is appended when the session fails: the requests were posted a pass before.
TEST(RpcSessions, WaitForRequestsThatWerePostedBefore) {
  NetworkFaults slow;
  slow.reading = Picos(900'000);
  slow.room = 8;  // all taken by the requests
  Pair pair(slow, {}, 100);
  pair.client.send(0, 1, 750, 32, 32);
  pair.step();
  pair.client.endpoint.sessions().close(0);
  for (int i = 0; i < 20; ++i) pair.step();
  EXPECT_THAT(statuses(pair.client), ElementsAre(RpcStatus::no_answer));
  EXPECT_EQ(pair.network.changed, 0);
}

TEST(RpcSessions, UseTheNumbersAndReceivesOfClosedSessionsAgain) {
  RpcOptions options;
  options.recvs = 64;
  options.credits = 32;
  Pair pair({}, options, 100);
  RpcSessions<test::NetworkPort>& sessions = pair.client.endpoint.sessions();
  const SessionName second = sessions.reserve();
  EXPECT_THROW(sessions.reserve(), std::exception);
  sessions.close(second.number);
  EXPECT_THROW(sessions.reserve(), std::exception) << "its calls have not ended";
  pair.step();
  const SessionName third = sessions.reserve();
  EXPECT_EQ(third.number, second.number);
  EXPECT_NE(third.epoch, second.epoch);
}

TEST(RpcSessions, DropPacketsOfAnEarlierSessionWithTheSameNumber) {
  Pair pair({}, {}, 100);
  pair.client.send(0, 1, 32, 32, 32);
  pair.run(1000);
  ASSERT_EQ(pair.network.sent.size(), 2u);
  std::vector<std::byte> request(kPacketHeaderBytes + 32);
  std::memcpy(request.data(), &pair.network.sent[0], kPacketHeaderBytes);
  pair.server.endpoint.sessions().close(0);
  for (int i = 0; i < 5; ++i) pair.step();
  ASSERT_EQ(pair.server.endpoint.sessions().accept(RpcNetwork::address(0), {}).number, 0);
  pair.network.deliver(1, request);
  pair.step();
  EXPECT_EQ(pair.server.handled.size(), 1u);
  EXPECT_EQ(pair.server.handled[1], 1);
  EXPECT_GT(pair.server.endpoint.counts().strange, 0u);
}

TEST(RpcSessions, KeepAServersEndUntilItsHandlersHaveAnswered) {
  RpcOptions options;
  options.recvs = 32;
  Pair pair({}, options, 100);
  pair.server.answer_later = true;
  for (std::uint64_t id = 1; id <= 2; ++id) pair.client.send(0, id, 300, 32, 32);
  for (int i = 0; i < 200; ++i) pair.step();
  ASSERT_EQ(pair.server.waiting.size(), 2u);
  RpcSessions<test::NetworkPort>& sessions = pair.server.endpoint.sessions();
  sessions.close(0);
  for (int handlers = 2; handlers > 0; --handlers) {
    for (int i = 0; i < 5; ++i) pair.step();
    EXPECT_THROW(sessions.accept(RpcNetwork::address(0), {}), std::exception) << handlers << " handlers run";
    EXPECT_EQ(pair.server.endpoint.response(pair.server.waiting.front().request.handle, 32), nullptr);
    pair.server.waiting.pop_front();
  }
  pair.step();
  EXPECT_EQ(sessions.accept(RpcNetwork::address(0), {}).number, 0);
}

TEST(RpcSessions, GiveBackTheBuffersOfAServersEnd) {
  RpcOptions options;
  Pair pair({}, options, 100);
  std::set<std::byte*> before;
  const auto end = [&pair](std::uint16_t number) {
    pair.server.endpoint.sessions().close(number);
    pair.step();
  };
  end(0);
  // The buffers of one session with a request of several packets and a large response.
  const auto buffers = [&pair, &end] {
    const SessionName name = pair.client.endpoint.sessions().reserve();
    const SessionName remote = pair.server.endpoint.sessions().accept(RpcNetwork::address(0), name);
    pair.client.endpoint.sessions().connect(name.number, RpcNetwork::address(1), remote);
    pair.client.send(name.number, pair.client.calls.size() + 1, 300, 300, 300);
    pair.run(1000);
    end(remote.number);
    pair.client.endpoint.sessions().close(name.number);
    pair.step();
    std::vector<MessageBuffer> taken;
    std::set<std::byte*> places;
    for (std::uint32_t i = 0; i < kSessionSlots; ++i) taken.push_back(pair.server.pool.allocate(100));
    for (int i = 0; i < 2; ++i) taken.push_back(pair.server.pool.allocate(300));
    for (const MessageBuffer& buffer : taken) {
      places.insert(buffer.data);
      pair.server.pool.free(buffer);
    }
    EXPECT_EQ(places.size(), taken.size()) << "a buffer was freed twice";
    return places;
  };
  buffers();  // the second 300 of the pool may be new
  EXPECT_EQ(buffers(), buffers());
}

}  // namespace
}  // namespace verbscope
