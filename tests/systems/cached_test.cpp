// The two ends of the cached store, each against a device that executes at once; the test plays the other.
#include "systems/cached/cached.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "systems/cached/client.hpp"
#include "systems/cached/server.hpp"
#include "systems/requests/client.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"
#include "tests/systems/answering_queues.hpp"

namespace verbscope::cached {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kGrhBytes = 40;

constexpr std::uint32_t kShortValue = 4;  // bytes, at the server

// A response: to which client, the number of the request, the version that it sends; kConfirmed: headers alone.
constexpr std::uint64_t kConfirmed = ~std::uint64_t{0};
struct Sent {
  std::uint32_t to = 0;
  std::uint32_t number = 0;
  std::uint64_t version = kConfirmed;
  bool operator==(const Sent&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sent& sent) {
  return out << "{" << sent.to << ", " << sent.number << ", " << sent.version << "}";
}

KeyHash key_named(std::uint64_t name) {
  return {.low = name * 0x9e3779b97f4a7c15u, .high = name};
}

std::vector<std::byte> bytes_of(std::uint64_t version) {
  std::vector<std::byte> bytes(kVersionBytes);
  std::memcpy(bytes.data(), &version, kVersionBytes);
  return bytes;
}

// A thread of the server with one QP for eight responses and sixteen requests, and two clients.
struct ServerEnd {
  static constexpr std::uint32_t kRecvs = 16;
  static constexpr std::uint64_t kStride = 128;  // bytes of a response

  ExecutingDevice device;
  ScriptedNode node;
  RunEnd end;
  MicaStore store{64, Bytes(4096), PageSize::kb4};
  test::AnsweringQueues answering{device, 1, 8, 2};
  std::vector<ResponsePort> ports{ResponsePort(answering.queues)};
  std::vector<Client> clients = std::vector<Client>(2);
  std::vector<std::byte> responses = std::vector<std::byte>(8 * kStride);
  test::MessageQueue messages{device, kRecvs};
  Server server;
  std::vector<Sent> sent;

  ServerEnd() {
    for (std::uint32_t c = 0; c < clients.size(); ++c) {
      clients[c].to.remote_qpn = c;
      clients[c].port = ports.data();
    }
    for (std::uint32_t j = 0; j < 8; ++j) {
      answering.segments[j].addr = reinterpret_cast<std::uint64_t>(responses.data() + j * kStride);
    }
    server.cq = device.cq();
    server.queues = answering.queues;
    server.ports = ports;
    server.recvs = messages.lanes;
    server.clients = clients;
    server.store = &store;
    server.value = kShortValue;
    server.max_batch = kRecvs;
    server.waiting.resize(kRecvs);
    device.after = [this](const ibv_send_wr& wr) {
      Sent response{.to = wr.wr.ud.remote_qpn, .number = be32toh(wr.imm_data) % kTagNumbers};
      if (wr.num_sge > 0) {
        EXPECT_EQ(wr.sg_list->length, item_bytes(kShortValue));
        std::memcpy(&response.version, reinterpret_cast<std::byte*>(wr.sg_list->addr) + kShortValue, kVersionBytes);
      }
      sent.push_back(response);
    };
  }

  void get(std::uint32_t client, std::uint64_t number, std::uint64_t key) { message(client, number, key, {}, 0); }
  void get(std::uint32_t client, std::uint64_t number, std::uint64_t key, std::uint64_t version) {
    message(client, number, key, bytes_of(version), 0);
  }
  void put(std::uint32_t client, std::uint64_t number, std::uint64_t key, std::uint64_t version) {
    std::vector<std::byte> item(kShortValue);
    const auto behind = bytes_of(version);
    item.insert(item.end(), behind.begin(), behind.end());
    message(client, number, key, item, kShortValue);
  }
  std::vector<Sent> pass() {
    sent.clear();
    EXPECT_GE(serve(node, server, end), 0);
    return sent;
  }

 private:
  void message(std::uint32_t client, std::uint64_t number, std::uint64_t key, const std::vector<std::byte>& first,
               std::uint32_t length) {
    std::vector<std::byte> bytes = first;
    bytes.resize(bytes.size() + kGetBytes);
    write_request(bytes.data() + bytes.size(), key_named(key), length);
    messages.deliver(bytes, tag_of(client, number));
  }
};

TEST(CachedServer, ConfirmsAVersionWithAHeaderOnlyResponse) {
  ServerEnd end;
  end.put(0, 0, 7, 1000);
  end.get(0, 1, 7, 1000);
  end.get(1, 0, 7, 999);
  end.get(1, 1, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0}, Sent{0, 1}, Sent{1, 0, 1000}, Sent{1, 1, 1000}));
}

TEST(CachedServer, SendsTheValueAfterAnotherClientsPut) {
  ServerEnd end;
  end.put(0, 0, 7, 1000);
  end.get(0, 1, 7, 1000);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0}, Sent{0, 1}));
  end.put(1, 0, 7, 2000);
  end.get(0, 2, 7, 1000);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 0}, Sent{0, 2, 2000}));
  end.get(0, 3, 7, 2000);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 3}));
}

TEST(CachedServer, AnswersARepeatedPutWithoutExecutingIt) {
  ServerEnd end;
  end.put(0, 0, 7, 1000);
  end.put(1, 0, 7, 2000);
  end.put(0, 0, 7, 1000);
  end.get(0, 1, 7, 2000);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0}, Sent{1, 0}, Sent{0, 0}, Sent{0, 1}));
  EXPECT_EQ(end.server.puts, 2u);
}

TEST(CachedServer, DropsARequestThatArrivesEarly) {
  ServerEnd end;
  end.put(0, 1, 7, 2000);
  EXPECT_THAT(end.pass(), IsEmpty());
  end.put(0, 0, 7, 1000);
  end.put(0, 1, 7, 2000);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0}, Sent{0, 1}));
  EXPECT_EQ(end.server.puts, 2u);
  EXPECT_EQ(end.device.recvs.size(), ServerEnd::kRecvs);
}

// Eight places for responses: the ninth request waits until some have left, and its RECV with it.
TEST(CachedServer, RequestsWaitForRoomForTheirResponse) {
  ServerEnd end;
  for (std::uint64_t number = 0; number < 10; ++number) end.put(0, number, 7, number);
  EXPECT_EQ(end.pass().size(), 8u);
  EXPECT_EQ(end.device.recvs.size(), ServerEnd::kRecvs - 2);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 8}, Sent{0, 9}));
  EXPECT_EQ(end.device.recvs.size(), ServerEnd::kRecvs);
}

// A pass polls one batch of completions, whatever --max_batch says.
TEST(CachedServer, APassIsFullAtOneBatchOfCompletions) {
  Server server;
  server.max_batch = 16;
  EXPECT_EQ(most_of_a_pass(server), 16u);
  server.max_batch = 256;
  EXPECT_EQ(most_of_a_pass(server), static_cast<std::uint64_t>(kRateBatch));
}

constexpr std::uint32_t kValue = 32;

StoreOptions options_of(std::uint32_t puts) {
  StoreOptions options;
  options.keys = 1;
  options.put_percent = puts;
  return options;
}

struct ClientEnd {
  ExecutingDevice device;
  StoreWorkload workload;
  ClientOracle oracle;
  CachedValues cache;
  std::vector<std::byte> buffer = std::vector<std::byte>(put_bytes(kValue));
  std::vector<Open> open = std::vector<Open>(1);
  std::vector<ServerLane> lanes;
  std::vector<std::byte> bodies = std::vector<std::byte>(4 * 128);
  std::vector<ibv_sge> segments = std::vector<ibv_sge>(4);
  std::vector<ibv_recv_wr> recvs = std::vector<ibv_recv_wr>(4);
  ibv_sge segment{};
  ibv_send_wr request{};
  std::array<SendQueue, 1> queues;
  ClientState state;
  Asker asker;
  RunEnd end;

  explicit ClientEnd(std::uint32_t puts, std::uint32_t share = 100)
      : workload(options_of(puts), 1),
        oracle(workload, StoreValues(1, kValue), 1, 4, 64),
        cache(oracle.values(), 1, share),
        queues{{{.qp = device.add_qp(), .depth = 16, .room = 16, .signal_every = 4}}} {
    state.cq = device.cq();
    state.queues = queues;
    state.retry_after = Picos(50'000);
    state.oracle = &oracle;
    open[0].end = buffer.data() + buffer.size();
    lanes.emplace_back().slots = open;
    for (std::uint32_t j = 0; j < recvs.size(); ++j) {
      segments[j] = {reinterpret_cast<std::uint64_t>(bodies.data() + j * 128), 128, 0};
      recvs[j].wr_id = recv_id(0, j);
      recvs[j].sg_list = &segments[j];
      recvs[j].num_sge = 1;
    }
    request.wr_id = send_id(0);
    request.sg_list = &segment;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND_WITH_IMM;
    asker.state = &state;
    asker.lanes = lanes;
    asker.cache = &cache;
    asker.request = &request;
    asker.recvs = {.ring = {.qp = device.add_qp(),
                            .ring = recvs.data(),
                            .length = static_cast<std::uint32_t>(recvs.size()),
                            .payloads = bodies.data() + kGrhBytes,
                            .stride = 128}};
    asker.value = kValue;
    asker.inline_bytes = 256;
  }

  // Asks, and returns how many bytes the request has.
  std::uint32_t ask() {
    EXPECT_TRUE(asker.ask(Picos(0), end));
    return segment.length;
  }
  // The server answers the last request: by headers alone, or with the value of a version, and what it calls that.
  void confirm() { answer({}); }
  void send(StoreVersion version) { send(version, version); }
  void send(StoreVersion version, StoreVersion called) {
    std::vector<std::byte> item(item_bytes(kValue));
    oracle.values().fill(item.data(), 0, version);
    const std::uint64_t word = called.word();
    std::memcpy(item.data() + kValue, &word, sizeof word);
    answer(item);
  }
  // The version that the last request names.
  StoreVersion asked_with() const {
    std::uint64_t word = 0;
    std::memcpy(&word, open[0].end - kKnownGetBytes, sizeof word);
    return StoreVersion::of_word(word);
  }

 private:
  void answer(const std::vector<std::byte>& item) {
    std::vector<std::byte> message(kGrhBytes);
    message.insert(message.end(), item.begin(), item.end());
    device.edit = [this](ibv_wc& wc) {
      wc.imm_data = htobe32(tag_of(0, open[0].number));
      wc.wc_flags = IBV_WC_WITH_IMM;
    };
    device.deliver(message.data(), static_cast<std::uint32_t>(message.size()));
    bool moved = false;
    take_responses(asker, state, 16, Picos(1000), true, moved, end);
  }
};

TEST(CachedClient, SendsTheCachedVersion) {
  ClientEnd client(0);
  EXPECT_EQ(client.ask(), kKnownGetBytes);
  EXPECT_TRUE(client.asked_with().initial());
  client.confirm();
  EXPECT_EQ(client.oracle.counts.checked, 1u);
  EXPECT_EQ(client.oracle.counts.wrong, 0u);
  EXPECT_EQ(client.state.window.confirmed, 1u);
}

TEST(CachedClient, CachesAReturnedValue) {
  ClientEnd client(20);
  ASSERT_FALSE(client.workload.op(1, 0).put || client.workload.op(1, 1).put);
  std::uint64_t number = 0;
  while (!client.workload.op(0, number).put) ++number;
  client.ask();
  client.send(StoreVersion(0, number));
  EXPECT_EQ(client.oracle.counts.wrong, 0u);
  EXPECT_EQ(client.state.window.confirmed, 0u);
  client.ask();
  EXPECT_EQ(client.asked_with(), StoreVersion(0, number));
}

TEST(CachedClient, CachesItsOwnPut) {
  ClientEnd client(50);
  std::uint64_t number = 0;
  while (!client.workload.op(1, number).put || client.workload.op(1, number + 1).put) ++number;
  for (std::uint64_t before = 0; before <= number; ++before) {
    client.ask();
    client.confirm();
  }
  client.ask();
  EXPECT_EQ(client.asked_with(), StoreVersion(1, number));
  client.confirm();
  EXPECT_GT(client.oracle.counts.own_checked, 0u);
  EXPECT_EQ(client.oracle.counts.wrong + client.oracle.counts.stale, 0u);
}

TEST(CachedClient, AConfirmationWithoutACachedValueIsWrong) {
  ClientEnd client(0, 0);
  EXPECT_EQ(client.ask(), kGetBytes);
  client.confirm();
  EXPECT_EQ(client.oracle.counts.wrong, 1u);
}

TEST(CachedClient, AValueOfAnotherVersionIsWrong) {
  ClientEnd client(0);
  client.ask();
  client.send(StoreVersion(), StoreVersion(0, 5));
  EXPECT_EQ(client.oracle.counts.wrong, 1u);
}

// Two clients, half PUTs: of the operations since, each is the client's own GET or PUT, the other's GET or its PUT.
TEST(CachedModel, ConfirmedShareFallsWithOtherClientsPuts) {
  EXPECT_DOUBLE_EQ(confirmed_share(0, 51), 1);
  EXPECT_DOUBLE_EQ(confirmed_share(0.5, 2), 2.0 / 3);
  EXPECT_DOUBLE_EQ(confirmed_share(1, 4), 0.25);
}

}  // namespace
}  // namespace verbscope::cached
