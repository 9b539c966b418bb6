// General RPCs without a device: the packets of the protocol, and what endpoints do when packets or peers are lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/systems/rpc_peer.hpp"

namespace verbscope {
namespace {

using test::expect_credits_kept;
using test::NetworkFaults;
using test::Pair;
using test::Peer;
using test::RpcNetwork;
using testing::ElementsAre;

std::string name(const PacketHeader& h) {
  const char* const kinds[] = {"request", "for response", "credit", "response"};
  return std::string(kinds[h.kind]) + " " + std::to_string(h.number);
}
std::vector<std::string> names(const std::vector<PacketHeader>& packets) {
  std::vector<std::string> out;
  for (const PacketHeader& h : packets) out.push_back(name(h));
  return out;
}

// NSDI 2019, Figure 3: two credits, three packets each way.
TEST(RpcProtocol, SendsFivePacketsEachWayForThreePacketsEachWay) {
  RpcOptions options;
  options.credits = 2;
  Pair pair({}, options, 100);
  pair.client.send(0, 5, 300, 300, 300);
  pair.run(1000);
  ASSERT_EQ(pair.client.calls[0].over, 1);
  EXPECT_EQ(pair.client.wrong + pair.server.wrong, 0);
  const std::vector<std::string> all = names(pair.network.sent);
  EXPECT_EQ(all.size(), 10u);
  const auto sent_by_client = [](const std::string& packet) {
    return packet.starts_with("request") || packet.starts_with("for");
  };
  std::vector<std::string> up, down;
  for (const std::string& packet : all) (sent_by_client(packet) ? up : down).push_back(packet);
  EXPECT_THAT(up, ElementsAre("request 0", "request 1", "request 2", "for response 3", "for response 4"));
  EXPECT_THAT(down, ElementsAre("credit 0", "credit 1", "response 2", "response 3", "response 4"));
}

TEST(RpcProtocol, NeedsTwoPacketsForASmallCall) {
  Pair pair({}, {}, 100);
  pair.client.send(0, 5, 32, 32, 32);
  pair.run(1000);
  EXPECT_THAT(names(pair.network.sent), ElementsAre("request 0", "response 0"));
}

TEST(RpcProtocol, QueuesCallsBeyondTheSlotsOfASession) {
  Pair pair({}, {}, 100);
  for (std::uint64_t id = 1; id <= 50; ++id) pair.client.send(0, id, 32, 40, 40);
  pair.run(10'000);
  EXPECT_TRUE(pair.client.all_over());
  EXPECT_EQ(pair.server.handled.size(), 50u);
}

TEST(RpcProtocol, RefusesAResponseThatIsLargerThanItsBuffer) {
  Pair pair({}, {}, 100);
  pair.client.send(0, 5, 32, 500, 400);
  pair.run(1000);
  ASSERT_EQ(pair.client.calls[0].over, 1);
  EXPECT_EQ(pair.client.calls[0].status, RpcStatus::response_large);
  expect_credits_kept(pair.client, 0);
}

TEST(RpcProtocol, GivesUpAPeerThatDoesNotAnswer) {
  Pair pair = test::pair_without_network();
  for (std::uint64_t id = 1; id <= 12; ++id) pair.client.send(0, id, 32, 32, 32);
  pair.run(10'000);
  EXPECT_TRUE(pair.client.all_over());
  for (const Peer::Call& call : pair.client.calls) EXPECT_EQ(call.status, RpcStatus::no_answer);
  expect_credits_kept(pair.client, 0);
}

TEST(RpcProtocol, SendsAgainWhatIsLostAfterARest) {
  RpcOptions options;
  options.rto = Picos(10'000'000);
  Pair pair({}, options, 100);
  pair.client.send(0, 1, 32, 32, 32);
  pair.run(1000);
  const Picos awake = pair.network.now() + 2 * options.rto;
  while (pair.network.now() < awake) pair.step();
  pair.client.send(0, 2, 32, 32, 32);
  test::StillNode node = pair.network.node();
  RunEnd end;
  ASSERT_GE(pair.client.endpoint.pass(node, end), 0);
  pair.network.reset(0);  // before its adapter has read the packet
  pair.run(1000);
  EXPECT_TRUE(pair.client.all_over());
  EXPECT_EQ(pair.client.endpoint.counts().retransmitted, 1u);
  EXPECT_EQ(pair.server.handled, (std::map<std::uint64_t, int>{{1, 1}, {2, 1}}));
}

TEST(RpcProtocol, HandlesOnceWhatIsSentTwice) {
  RpcOptions options;
  options.rto = Picos(2'000'000);  // shorter than the round trip: every request is sent again
  NetworkFaults slow;
  slow.delay = Picos(3'000'000);
  Pair pair(slow, options, 100);
  for (std::uint64_t id = 1; id <= 20; ++id) pair.client.send(0, id, 250, 32, 32);
  pair.run(100'000);
  ASSERT_TRUE(pair.client.all_over());
  EXPECT_GT(pair.client.endpoint.counts().retransmitted, 0u);
  for (const auto& [id, times] : pair.server.handled) EXPECT_EQ(times, 1) << id;
}

TEST(RpcProtocol, WaitsLongerAfterEachTimeOutInARow) {
  RpcOptions options;
  options.rto = Picos(2'000'000);
  options.most_timeouts = 100;
  NetworkFaults dead;
  dead.loss = 1;
  Pair pair(dead, options, 100);
  pair.client.send(0, 1, 32, 32, 32);
  // Due after 1, 3, 7, 15, 23 and 31 RTOs; each may be noticed a tenth of an RTO later.
  for (const auto& [rtos, copies] : std::map<int, std::uint64_t>{{2, 1}, {6, 2}, {14, 3}, {22, 4}, {30, 5}, {38, 6}}) {
    while (pair.network.now() < rtos * pair.client.options.rto) pair.step();
    EXPECT_EQ(pair.client.endpoint.counts().retransmitted, copies) << rtos;
  }
}

// A copy of the request waits in the rate limiter when the response to the first one arrives.
TEST(RpcProtocol, DropsAResponseWhileACopyOfItsRequestIsInTheRateLimiter) {
  RpcOptions options;
  options.rto = Picos(10'000'000);  // shorter than half of the round trips
  options.control = RpcControl::timely;
  options.bypass_limiter = false;
  options.timely.link = BytesPerSecond{options.timely.floor};  // 116 bytes take 7.7 us
  NetworkFaults uneven;
  uneven.delay = Picos(3'000'000);
  uneven.jitter = Picos(4'000'000);
  Pair pair(uneven, options, 100);
  for (std::uint64_t id = 1; id <= 50; ++id) pair.client.send(0, id, 100, 32, 32);
  pair.run(100'000);
  ASSERT_TRUE(pair.client.all_over());
  EXPECT_GT(pair.client.endpoint.counts().dropped_for_limiter, 0u);
  for (const Peer::Call& call : pair.client.calls) EXPECT_EQ(call.status, RpcStatus::answered);
  for (const auto& [id, times] : pair.server.handled) EXPECT_EQ(times, 1) << id;
  EXPECT_EQ(pair.network.changed, 0);
}

// The client gives up and sends the next request in the same slot, while a worker still reads the one before.
TEST(RpcProtocol, KeepsARequestUntilItsWorkerHasAnswered) {
  Pair pair({}, {}, 100);
  pair.client.by_worker = true;
  pair.client.send(0, 1, 90, 32, 32);
  for (int i = 0; i < 60; ++i) pair.step();
  ASSERT_EQ(pair.server.waiting.size(), 1u);
  const auto send_next_in_slot = [&pair, number = pair.server.waiting.front().request.handle.number] {
    PacketHeader h{};
    h.type = Peer::kByWorker;
    h.bytes = 12;
    h.request = (number + kSessionSlots) & (kRequestNumbers - 1);
    h.epoch = kUsualEpoch;
    std::vector<std::byte> packet(sizeof h + 12);
    std::memcpy(packet.data(), &h, sizeof h);
    pair.network.deliver(1, packet, false);
    pair.step();
  };
  send_next_in_slot();
  EXPECT_EQ(pair.server.waiting.size(), 1u) << "the slot was used again";
  pair.server.answer(pair.server.waiting.front());
  pair.server.waiting.clear();
  EXPECT_EQ(pair.server.wrong, 0);
  send_next_in_slot();
  EXPECT_EQ(pair.server.waiting.size(), 1u);
}

// Every copy of a request is out of all queues when the caller gives up.
TEST(RpcProtocol, GivesUpOnlyWhenNoQueueHasTheRequest) {
  RpcOptions options;
  options.rto = Picos(5'000'000);
  options.most_timeouts = 2;
  options.control = RpcControl::timely;
  options.bypass_limiter = false;
  options.timely.link = BytesPerSecond{options.timely.floor};
  NetworkFaults dead;
  dead.loss = 1;
  dead.reading = Picos(900'000);
  dead.room = 1;
  Pair pair(dead, options, 100);
  for (std::uint64_t id = 1; id <= 12; ++id) pair.client.send(0, id, 250, 32, 32);
  pair.run(100'000);
  EXPECT_TRUE(pair.client.all_over());
  EXPECT_EQ(pair.network.changed, 0);
}

// The adapter reads a posted packet later; when the response is there it must have read every copy of the request.
TEST(RpcProtocol, FlushesTheSendQueueAfterSendingAgain) {
  RpcOptions options;
  options.rto = Picos(7'000'000);  // the response arrives just after it
  NetworkFaults slow;
  slow.delay = Picos(3'500'000);
  slow.reading = Picos(500'000);
  Pair pair(slow, options, 100);
  pair.client.send(0, 1, 100, 32, 32);
  pair.run(100'000);
  for (int i = 0; i < 100; ++i) pair.step();
  EXPECT_GT(pair.client.endpoint.counts().retransmitted, 0u);
  EXPECT_GT(pair.client.endpoint.counts().flushes, 0u);
  EXPECT_EQ(pair.network.changed, 0);
}

// The send queue has room for one packet. A copy of the first request waits until the second one has been read, and is
// sent when the response to the first copy arrives.
TEST(RpcProtocol, FlushesPacketsThatWaitedForRoomBeforeItTakesResponses) {
  RpcOptions options;
  options.rto = Picos(10'000'000);  // 1 us before the first response
  NetworkFaults slow;
  slow.delay = Picos(3'500'000);
  slow.reading = Picos(2'000'000);
  slow.room = 1;
  for (int second = 80; second < 115; ++second) {
    Pair pair(slow, options, 100);
    pair.client.send(0, 1, 100, 32, 32);
    for (int i = 0; i < second; ++i) pair.step();
    pair.client.send(0, 2, 100, 32, 32);
    pair.run(1000);
    for (int i = 0; i < 100; ++i) pair.step();
    ASSERT_TRUE(pair.client.all_over());
    EXPECT_EQ(pair.network.changed, 0) << second;
  }
}

// Three packets each way, all marked. The server tells the client only about marked packets of the client.
TEST(RpcProtocol, TellsTheClientOfMarkedPackets) {
  for (const RpcControl control : {RpcControl::none, RpcControl::dcqcn}) {
    RpcOptions options;
    options.control = control;
    options.dcqcn.line = {1e9};
    NetworkFaults congested;
    congested.mark = 1;
    Pair pair(congested, options, 100);
    pair.client.send(0, 5, 300, 300, 300);
    pair.run(1000);
    ASSERT_EQ(pair.client.calls[0].over, 1);
    const auto marked = std::ranges::count_if(pair.network.sent, [](const PacketHeader& h) { return h.marked == 1; });
    const bool reacts = control == RpcControl::dcqcn;
    EXPECT_EQ(marked, reacts ? 5 : 0);
    EXPECT_EQ(pair.server.endpoint.counts().marks, reacts ? 5u : 0u);
    EXPECT_EQ(pair.client.endpoint.client(0).rate.at_link_rate(), !reacts);
  }
}

TEST(RpcProtocol, TellsTheClientOnceOfAMark) {
  RpcOptions options;
  options.control = RpcControl::dcqcn;
  options.dcqcn.line = {1e9};
  Pair pair({}, options, 100);
  PacketHeader h{};  // of slot 0, and too old to be answered
  h.kind = static_cast<std::uint8_t>(PacketKind::request) & 3;
  h.number = 1;
  h.epoch = kUsualEpoch;
  std::vector<std::byte> packet(sizeof h);
  std::memcpy(packet.data(), &h, sizeof h);
  pair.network.deliver(1, packet, true);
  for (std::uint64_t id = 1; id <= 2 * kSessionSlots; ++id) pair.client.send(0, id, 32, 32, 32);
  pair.run(1000);
  ASSERT_TRUE(pair.client.all_over());
  EXPECT_EQ(std::ranges::count_if(pair.network.sent, [](const PacketHeader& sent) { return sent.marked == 1; }), 1);
}

TEST(RpcProtocol, RefusesSessionsBeyondTheReceiveQueue) {
  RpcOptions options;
  options.recvs = 64;
  options.credits = 32;
  RpcNetwork network(1, {}, 1);
  Peer peer(network, 0, 100, options);
  peer.endpoint.open_client(RpcNetwork::address(0), 0);
  peer.endpoint.open_server(RpcNetwork::address(0), 0);
  try {
    peer.endpoint.open_client(RpcNetwork::address(0), 1);
    FAIL() << "a third session has no RECVs";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("at most 2"));
  }
}

// Under a sanitizer: whatever arrives, no byte outside of a message is read or written.
TEST(RpcProtocol, SurvivesForgedPackets) {
  std::mt19937_64 random(7);
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  RpcOptions options;
  options.credits = 4;
  options.rto = Picos(5'000'000);
  Pair pair({}, options, 100);
  for (std::uint64_t id = 1; id <= 100; ++id) {
    pair.client.send(0, id, 250, 350, 400);
    for (int i = 0; i < 200; ++i) {
      std::vector<std::byte> packet(below(kPacketHeaderBytes + 100 + 1));
      PacketHeader h{};
      h.type = below(3) & 0xff;
      h.bytes = below(i % 50 == 0 ? 1u << 24 : 600) & 0xffffff;
      h.session = below(2) & 0xffff;
      h.kind = below(4) & 3;
      h.number = below(9) & 0x3fff;
      h.request = below(2 * id + 16) & 0xffffffff;
      h.epoch = (kUsualEpoch + (i % 10 == 0 ? 1u : 0u)) & 0xffff;
      if (!packet.empty()) std::memcpy(packet.data(), &h, std::min(packet.size(), sizeof h));
      pair.network.deliver(static_cast<std::uint32_t>(below(2)), packet);
      if (i % 20 == 0) pair.step();
      ASSERT_NO_FATAL_FAILURE(expect_credits_kept(pair.client, 0));
    }
  }
  EXPECT_GT(pair.server.endpoint.counts().unknown, 0u);
  EXPECT_GT(pair.client.endpoint.counts().unknown, 0u);
  EXPECT_GT(pair.client.endpoint.counts().strange, 0u);
}

}  // namespace
}  // namespace verbscope
