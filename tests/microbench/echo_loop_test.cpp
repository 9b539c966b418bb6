// The two loops of echo_rate against a device that executes at once; the test plays the other side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "microbench/echo/client.hpp"
#include "microbench/echo/server.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;

constexpr std::uint32_t kEchoOutstanding = 3;
constexpr std::uint32_t kSize = 32;
constexpr std::uint64_t kStride = 64;
constexpr std::uint32_t kClient = 5;

// Requests and responses by WRITE: places of both sides, and one queue.
struct Memory {
  alignas(64) std::byte asked[kEchoOutstanding * kStride] = {}, responses[kEchoOutstanding * kStride] = {};
  alignas(64) std::byte requests[kEchoOutstanding * kStride] = {};  // at the server
};

struct End {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::vector<ibv_sge> segments = std::vector<ibv_sge>(kEchoOutstanding);
  std::vector<ibv_send_wr> posts = std::vector<ibv_send_wr>(kEchoOutstanding);
  std::vector<SendQueue> queues;

  End(std::byte* from, std::byte* to, std::uint32_t signal_every) {
    for (std::uint32_t j = 0; j < kEchoOutstanding; ++j) {
      segments[j] = {reinterpret_cast<std::uint64_t>(from + (j + 1) * kStride - kSize), kSize, 1};
      posts[j].wr_id = send_id(0);
      posts[j].opcode = IBV_WR_RDMA_WRITE;
      posts[j].sg_list = &segments[j];
      posts[j].num_sge = 1;
      posts[j].wr.rdma = {reinterpret_cast<std::uint64_t>(to + (j + 1) * kStride - kSize), 1};
    }
    queues.push_back({.qp = device.add_qp(), .depth = 16, .room = 16, .signal_every = signal_every});
    control.phase = Phase::measure;
    node.on_idle = [this] { control.quit = true; };
  }
};

struct Client : Memory, End {
  std::vector<Picos> posted_at = std::vector<Picos>(kEchoOutstanding);
  std::vector<EchoClientLane> lanes = std::vector<EchoClientLane>(1);
  EchoClientState state;

  explicit Client(std::uint32_t signal_every = 1) : End(asked, requests, signal_every) {
    lanes[0].requests = posts;
    lanes[0].asked = posted_at;
    lanes[0].out = {asked, kStride};
    lanes[0].in = {responses, kStride};
    state.cq = device.cq();
    state.queues = queues;
    state.lanes = lanes;
    state.client = kClient;
    state.size = kSize;
    state.goal = 100;
    std::memset(asked, 7, sizeof asked);
    // The server answers at once with what it got.
    device.after = [this](const ibv_send_wr&) { std::memcpy(responses, requests, sizeof responses); };
  }
};

TEST(EchoClient, CountsAResponseForEachRequest) {
  Client client;
  client_loop(client.node, client.state, client.control, client.tally);
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_EQ(client.lanes[0].sent, client.lanes[0].answered);
  EXPECT_EQ(client.device.requests.size(), client.lanes[0].sent);
  EXPECT_EQ(client.state.wrong, 0u);
  EXPECT_EQ(client.tally.interval.end_ops - client.tally.interval.begin_ops, 100u);
}

TEST(EchoClient, NumbersRequestsInTheirLastEightBytes) {
  Client client;
  std::vector<std::uint64_t> tags;
  client.device.after = [&](const ibv_send_wr& wr) {
    tags.push_back(load_word<std::uint64_t>(reinterpret_cast<std::byte*>(wr.wr.rdma.remote_addr) + kSize - kTagBytes));
    std::memcpy(client.responses, client.requests, sizeof client.responses);
  };
  client_loop(client.node, client.state, client.control, client.tally);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    EXPECT_EQ(number_of(tags[i]), i + 1);
    EXPECT_EQ(client_of(tags[i]), kClient);
  }
}

TEST(EchoClient, HasNoMoreOutstandingThanItMay) {
  Client client;
  std::size_t most = 0;
  client.device.after = [&](const ibv_send_wr&) {
    most = std::max(most, static_cast<std::size_t>(client.lanes[0].sent - client.lanes[0].answered));
  };
  client.node.on_idle = [&] { std::memcpy(client.responses, client.requests, sizeof client.responses); };
  client_loop(client.node, client.state, client.control, client.tally);
  EXPECT_EQ(most, kEchoOutstanding);
}

TEST(EchoClient, PollsForCompletionsOnlyWhenOneIsDue) {
  Client client(8);
  client_loop(client.node, client.state, client.control, client.tally);
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  const auto signaled = std::ranges::count_if(
      client.device.requests, [](const ibv_send_wr& wr) { return (wr.send_flags & IBV_SEND_SIGNALED) != 0; });
  EXPECT_EQ(static_cast<std::size_t>(signaled), client.device.requests.size() / 8);
}

TEST(EchoClient, RejectsAResponseWithAnotherByteWhenItValidates) {
  for (const bool validate : {false, true}) {
    Client client;
    client.state.validate = validate;
    client.device.after = [&](const ibv_send_wr&) {
      if (client.device.requests.size() == 4) client.requests[kStride - kSize] = std::byte{1};
      std::memcpy(client.responses, client.requests, sizeof client.responses);
    };
    client_loop(client.node, client.state, client.control, client.tally);
    EXPECT_EQ(client.state.wrong, validate ? 1u : 0u);
  }
}

TEST(EchoClient, RejectsAResponseToAnotherRequest) {
  Client client;
  client.state.by_memory = false;
  client.state.goal = 1;
  std::vector<ibv_recv_wr> requests(kEchoOutstanding);
  alignas(64) std::byte places[kEchoOutstanding * kStride] = {};
  std::vector<ibv_sge> segments(kEchoOutstanding);
  ibv_qp* const qp = client.device.add_qp();
  for (std::uint32_t j = 0; j < kEchoOutstanding; ++j) {
    segments[j] = {reinterpret_cast<std::uint64_t>(places + (j + 1) * kStride - kSize), kSize, 1};
    requests[j].wr_id = recv_id(0, j);
    requests[j].sg_list = &segments[j];
    requests[j].num_sge = 1;
    client.device.recvs.push_back(requests[j]);
  }
  client.lanes[0].recvs = {.qp = qp, .ring = requests.data(), .length = static_cast<std::uint32_t>(requests.size())};
  client.lanes[0].in = {places, kStride};
  std::uint64_t number = 0;
  client.device.after = [&](const ibv_send_wr& wr) {
    std::byte response[kSize];
    std::memcpy(response, reinterpret_cast<void*>(wr.sg_list->addr), kSize);
    if (++number == 2) response[kSize - kTagBytes] ^= std::byte{8};
    client.device.deliver(response, kSize);
  };
  client_loop(client.node, client.state, client.control, client.tally);
  EXPECT_EQ(client.state.wrong, 1u);
  EXPECT_EQ(client.lanes[0].sent, client.lanes[0].answered);
}

TEST(EchoClient, FreesTheSlotOfALostRequestWhenALaterOneIsAnswered) {
  Client client;
  client.state.give_up = Picos(1'000'000'000'000);                    // not by time
  std::byte* const lost = client.requests + 2 * kStride - kTagBytes;  // where request 5 goes
  client.device.after = [&](const ibv_send_wr&) {
    if (number_of(load_word<std::uint64_t>(lost)) == 5) store_word(lost, echo_tag(kClient, 2));
    std::memcpy(client.responses, client.requests, sizeof client.responses);
  };
  client_loop(client.node, client.state, client.control, client.tally);
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_EQ(client.lanes[0].answered, client.lanes[0].sent - 1);
  EXPECT_EQ(client.state.wrong, 0u);
}

TEST(EchoClient, GivesRequestsUpWhenNothingComes) {
  Client client;
  client.state.give_up = Picos(100'000);
  client.device.after = [&](const ibv_send_wr&) {  // the first requests are lost, as many as may be outstanding
    if (client.device.requests.size() > kEchoOutstanding) {
      std::memcpy(client.responses, client.requests, sizeof client.responses);
    }
  };
  client.node.on_idle = [] {};
  client_loop(client.node, client.state, client.control, client.tally);
  EXPECT_EQ(client.tally.end.kind, EndKind::finished);
  EXPECT_EQ(client.lanes[0].answered, client.lanes[0].sent - kEchoOutstanding);
  EXPECT_EQ(client.state.wrong, 0u);
}

struct Server : Memory, End {
  std::vector<EchoServerLane> lanes = std::vector<EchoServerLane>(1);
  EchoServerState state;

  Server() : End(requests, responses, 1) {
    lanes[0].responses = posts;
    lanes[0].in = {requests, kStride};
    state.cq = device.cq();
    state.queues = queues;
    state.lanes = lanes;
    state.waiting.resize(4);
  }
  void request(std::uint64_t number) {
    store_word(requests + ((number - 1) % kEchoOutstanding + 1) * kStride - kTagBytes, echo_tag(kClient, number));
  }
};

void serve(Server& server) {
  server_loop(server.node, server.state, server.control, server.tally, echo_pass<ScriptedNode>);
}

TEST(EchoServer, AnswersEachRequestOnceWithItsBytes) {
  Server server;
  std::uint64_t number = 0;
  server.node.on_idle = [&] {
    if (number == 20) {
      server.control.quit = true;
    } else {
      server.request(++number);
    }
  };
  std::vector<std::uint64_t> answered;
  server.device.after = [&](const ibv_send_wr& wr) {
    answered.push_back(
        load_word<std::uint64_t>(reinterpret_cast<std::byte*>(wr.wr.rdma.remote_addr) + kSize - kTagBytes));
  };
  serve(server);
  ASSERT_EQ(answered.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(answered[i], echo_tag(kClient, i + 1));
  EXPECT_EQ(server.lanes[0].served, 20u);
}

TEST(EchoServer, DoesNotServeAStaleRequestAgain) {
  Server server;
  for (std::uint64_t number = 1; number <= kEchoOutstanding; ++number) server.request(number);
  serve(server);
  EXPECT_EQ(server.device.requests.size(), kEchoOutstanding);
}

TEST(EchoServer, AnswersInListsOfUpToPostList) {
  Server server;
  server.state.post_list = 2;
  for (std::uint64_t number = 1; number <= 3; ++number) server.request(number);
  serve(server);
  EXPECT_EQ(server.device.requests.size(), 3u);
  EXPECT_EQ(server.state.batches.lists[2], 1u);
  EXPECT_EQ(server.state.batches.lists[1], 1u);  // it waits for no more
}

// A server with a second lane, whose requests bear an immediate of 1 and whose answers go out on the queue of the
// first.
struct TwoLanes : Server {
  alignas(64) std::byte others[kEchoOutstanding * kStride] = {};
  std::vector<ibv_send_wr> more = posts;
  std::vector<std::uint32_t> answered;  // the lanes, in order

  TwoLanes() {
    for (ibv_send_wr& wr : more) wr.imm_data = 1;
    queues.push_back({.qp = device.add_qp(), .index = 1, .depth = 16});
    lanes.push_back(
        {.responses = more, .in = {others, kStride}, .recvs = {}, .queue = 0, .addresses = {}, .answered = {}});
    state.queues = queues;
    state.lanes = lanes;
    device.after = [this](const ibv_send_wr& wr) { answered.push_back(wr.imm_data); };
  }
  void request_of_second(std::uint64_t number) {
    store_word(others + ((number - 1) % kEchoOutstanding + 1) * kStride - kTagBytes, echo_tag(kClient + 1, number));
  }
};

TEST(EchoServer, SendsTheAnswersOfLanesThatShareAQueueInOneList) {
  TwoLanes server;
  server.state.post_list = 4;
  server.request_of_second(1);
  server.request(1);
  serve(server);
  EXPECT_EQ(server.state.batches.lists[2], 1u);
  EXPECT_EQ(server.queues[0].posted(), 2u);
  EXPECT_EQ(server.queues[1].posted(), 0u);
}

TEST(EchoServer, BeginsAPassWithTheFirstBlockedLane) {
  TwoLanes server;
  server.queues[0].depth = server.queues[0].room = 1;
  server.request(1);
  server.request_of_second(1);
  server.device.after = [&](const ibv_send_wr& wr) {
    server.answered.push_back(wr.imm_data);
    if (server.answered.size() == 1) server.request(2);  // it is quick, and yet the second lane is next
  };
  serve(server);
  EXPECT_THAT(server.answered, testing::ElementsAre(0, 1, 0));
}

TEST(EchoServer, ComputesForEachRequestBeforeItAnswers) {
  Server server;
  server.state.work = Nanos(700);
  std::vector<Picos> at;
  server.device.after = [&](const ibv_send_wr&) { at.push_back(server.node.now()); };
  const Picos begin = server.node.now();
  server.request(1);
  server.request(2);
  serve(server);
  ASSERT_EQ(at.size(), 2u);
  EXPECT_GE(at[0] - begin, Nanos(700));
  EXPECT_GE(at[1] - at[0], Nanos(700));
}

TEST(EchoServer, SkipsALostRequestOnAnUnreliableTransport) {
  for (const bool lossy : {false, true}) {
    Server server;
    server.state.lossy = lossy;
    server.request(1);
    server.request(3);
    serve(server);
    EXPECT_EQ(server.lanes[0].served, lossy ? 2u : 1u);
  }
}

TEST(EchoServer, AnswersDatagramsToTheirSendersAndCountsThem) {
  Server server;
  server.state.by_memory = false;
  std::vector<ibv_recv_wr> requests(kEchoOutstanding);
  std::vector<UdAddress> addresses(kClient + 1);
  std::vector<std::uint64_t> answered(kClient + 1);
  for (std::uint32_t i = 0; i <= kClient; ++i) addresses[i].remote_qpn = 100 + i;
  for (std::uint32_t j = 0; j < kEchoOutstanding; ++j) {
    requests[j].wr_id = recv_id(0, j);
    requests[j].sg_list = &server.segments[j];
    requests[j].num_sge = 1;
    server.posts[j].opcode = IBV_WR_SEND;
    server.device.recvs.push_back(requests[j]);
  }
  server.lanes[0].recvs = {
      .qp = server.queues[0].qp, .ring = requests.data(), .length = static_cast<std::uint32_t>(requests.size())};
  server.lanes[0].addresses = addresses;
  server.lanes[0].answered = answered;
  std::uint32_t sent = 0;
  server.node.on_idle = [&] {
    std::byte request[kSize] = {};
    store_word(request + kSize - kTagBytes, echo_tag(sent == 7 ? kClient + 1 : kClient, sent + 1));
    if (++sent > 8) server.control.quit = true;
    if (sent <= 8) server.device.deliver(request, kSize);
  };
  serve(server);
  EXPECT_EQ(server.device.requests.size(), 7u);
  EXPECT_EQ(server.device.requests.back().wr.ud.remote_qpn, 100u + kClient);
  EXPECT_EQ(answered[kClient], 7u);
  EXPECT_EQ(server.state.wrong, 1u);  // a client that there is not
  EXPECT_EQ(server.device.recvs.size(), kEchoOutstanding);
}

}  // namespace
}  // namespace verbscope
