// Tests RPCs as FaSST's without a device: one packet each way, and no answer if a packet is lost.
#include "systems/rpc/fasst_endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/systems/rpc_network.hpp"

namespace verbscope {
namespace {

using test::NetworkFaults;
using test::NetworkPort;
using test::RpcNetwork;
using testing::Each;
using testing::ElementsAre;

constexpr std::uint32_t kData = 100;  // bytes of a packet

// Two endpoints: the first calls the second one, which answers each word with its complement.
struct FasstPair {
  explicit FasstPair(const NetworkFaults& faults, Picos rto = Picos(50'000'000)) : network(2, faults, 1) {
    options.rto = rto;
    client.open_client(RpcNetwork::address(1), 0);
    server.open_server(RpcNetwork::address(0), 0);
    server.serve(3, &on_request, this);
  }
  static void on_request(void* self, const RpcRequest& request) {
    FasstPair& pair = *static_cast<FasstPair*>(self);
    std::uint64_t word;
    std::memcpy(&word, request.data, sizeof word);
    pair.handled.push_back(word);
    MessageBuffer* const response = pair.server.response(request.handle, sizeof word);
    word = ~word;
    std::memcpy(response->data, &word, sizeof word);
    pair.server.respond(request.handle);
  }
  static void on_done(void* self, std::uint64_t index, RpcStatus status) {
    FasstPair& pair = *static_cast<FasstPair*>(self);
    pair.over[index] = status;
    if (status != RpcStatus::answered) return;
    std::uint64_t word;
    std::memcpy(&word, pair.responses[index].data, sizeof word);
    EXPECT_EQ(word, ~(1000 + index));
  }

  void call(std::uint32_t count) {
    requests.resize(count);
    responses.resize(count);
    over.assign(count, RpcStatus::response_large);
    for (std::uint32_t i = 0; i < count; ++i) {
      requests[i] = pool.allocate(8);
      responses[i] = pool.allocate(8);
      requests[i].bytes = 8;
      const std::uint64_t word = 1000 + i;
      std::memcpy(requests[i].data, &word, sizeof word);
      client.call(0, {3, &requests[i], &responses[i], &on_done, this, i});
    }
  }
  void run(int passes) {
    test::StillNode node = network.node();
    RunEnd end;
    for (int i = 0; i < passes; ++i) {
      ASSERT_GE(client.pass(node, end), 0);
      ASSERT_GE(server.pass(node, end), 0);
      network.advance(Picos(100'000));
    }
  }

  RpcNetwork network;
  RpcOptions options;
  MessagePool pool{{kData}, nullptr, false};
  FasstEndpoint<NetworkPort> client{network.port(0), pool, options};
  FasstEndpoint<NetworkPort> server{network.port(1), pool, options};
  std::vector<MessageBuffer> requests, responses;
  std::vector<RpcStatus> over;  // by call
  std::vector<std::uint64_t> handled;
};

TEST(FasstEndpoint, SendsOnePacketEachWay) {
  FasstPair pair({});
  pair.call(20);
  pair.run(100);
  EXPECT_THAT(pair.over, Each(RpcStatus::answered));
  EXPECT_EQ(pair.network.sent.size(), 40u);
  EXPECT_TRUE(pair.client.drained());
}

TEST(FasstEndpoint, WaitsForRoomInTheSendQueue) {
  NetworkFaults narrow;
  narrow.room = 2;
  narrow.reading = Picos(300'000);
  FasstPair pair(narrow);
  pair.call(20);
  pair.run(400);
  EXPECT_THAT(pair.over, Each(RpcStatus::answered));
  EXPECT_EQ(pair.handled.size(), 20u);
  EXPECT_EQ(pair.network.changed, 0);
}

TEST(FasstEndpoint, ReusesSlotsForLaterCalls) {
  FasstPair pair({});
  for (int round = 0; round < 5; ++round) {
    pair.call(3);
    pair.run(100);
    EXPECT_THAT(pair.over, Each(RpcStatus::answered)) << round;
  }
  EXPECT_EQ(pair.network.changed, 0);
}

TEST(FasstEndpoint, GivesUpLostPacketsAfterTheTimeOut) {
  NetworkFaults dead;
  dead.loss = 1;
  FasstPair pair(dead, Picos(10'000'000));
  pair.call(2);
  pair.run(90);
  EXPECT_FALSE(pair.client.drained());
  pair.run(50);
  EXPECT_THAT(pair.over, ElementsAre(RpcStatus::no_answer, RpcStatus::no_answer));
  EXPECT_EQ(pair.network.sent.size(), 2u) << "nothing is sent again";
  EXPECT_TRUE(pair.client.drained());
}

TEST(FasstEndpoint, IgnoresStrangePackets) {
  FasstPair pair({});
  pair.call(1);
  for (std::size_t bytes = 0; bytes < 40; ++bytes) pair.network.deliver(0, std::vector<std::byte>(bytes));
  PacketHeader h{};
  h.epoch = kUsualEpoch;
  h.kind = static_cast<std::uint8_t>(PacketKind::response) & 3;
  h.request = 77;  // no slot has it
  std::vector<std::byte> packet(sizeof h);
  std::memcpy(packet.data(), &h, sizeof h);
  pair.network.deliver(0, packet);
  pair.run(100);
  EXPECT_THAT(pair.over, ElementsAre(RpcStatus::answered));
  EXPECT_EQ(pair.client.use().counts.unknown, 40u);
  EXPECT_EQ(pair.client.use().counts.stale, 1u);
}

}  // namespace
}  // namespace verbscope
