// General RPCs without a device: the packets of the protocol, and its invariants on networks that lose, repeat and
// reorder packets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <random>
#include <set>

#include "tests/systems/rpc_network.hpp"

namespace verbscope {
namespace {

using test::NetworkFaults;
using test::NetworkPort;
using test::RpcNetwork;
using testing::ElementsAre;

constexpr Picos kStep{100'000};
constexpr std::uint32_t kMostResponse = 4096;

// An endpoint with its own memory, which calls and serves. A response has as many bytes as the first four bytes of its
// request say, or none if the request has none.
struct Peer {
  Peer(RpcNetwork& network, std::uint32_t number, std::uint32_t data, const RpcOptions& given)
      : options(given), pool({data}, nullptr, false), endpoint(network.port(number), pool, options) {
    endpoint.serve(1, &on_request, this);
  }

  static void on_request(void* self, const RpcRequest& request) { static_cast<Peer*>(self)->serve(request); }
  static void on_done(void* self, std::uint64_t index, RpcStatus status) {
    static_cast<Peer*>(self)->done(index, status);
  }

  static std::byte byte_of(std::uint64_t call, std::uint32_t at) {
    return static_cast<std::byte>(call * 31 + at * 7 + 1);
  }

  struct Call {
    MessageBuffer request, response;
    std::uint32_t response_bytes;
    std::uint64_t id;
    int over = 0;
    RpcStatus status{};
  };

  void send(std::uint16_t session, std::uint64_t id, std::uint32_t bytes, std::uint32_t response_bytes,
            std::uint32_t room) {
    calls.push_back({pool.allocate(bytes), pool.allocate(room), response_bytes, id});
    Call& call = calls.back();
    call.request.bytes = bytes;
    for (std::uint32_t i = 0; i < bytes; ++i) call.request.data[i] = byte_of(id, i);
    if (bytes >= 12) {
      std::memcpy(call.request.data, &response_bytes, 4);
      std::memcpy(call.request.data + 4, &id, 8);
    }
    endpoint.call(session, {1, &call.request, &call.response, &on_done, this, calls.size() - 1});
  }

  void serve(const RpcRequest& request) {
    std::uint32_t bytes = 0;
    std::uint64_t id = 0;
    if (request.bytes >= 12) {
      std::memcpy(&bytes, request.data, 4);
      bytes %= kMostResponse;  // of a forged request
      std::memcpy(&id, request.data + 4, 8);
      ++handled[id];
    }
    for (std::uint32_t i = 12; i < request.bytes; ++i) wrong += request.data[i] == byte_of(id, i) ? 0 : 1;
    if (answer_later) {
      waiting.push_back({request.handle, bytes, id});
    } else {
      answer({request.handle, bytes, id});
    }
  }
  struct Waiting {
    RpcHandle handle;
    std::uint32_t bytes;
    std::uint64_t id;
  };
  void answer(const Waiting& request) {
    MessageBuffer* const response = endpoint.response(request.handle, request.bytes);
    if (response == nullptr) return;
    for (std::uint32_t i = 0; i < request.bytes; ++i) response->data[i] = byte_of(~request.id, i);
    endpoint.respond(request.handle);
  }

  void done(std::uint64_t index, RpcStatus status) {
    Call& call = calls[index];
    ++call.over;
    call.status = status;
    if (status == RpcStatus::answered) {
      wrong += call.response.bytes == call.response_bytes ? 0 : 1;
      for (std::uint32_t i = 0; i < call.response.bytes; ++i) {
        wrong += call.response.data[i] == byte_of(~call.id, i) ? 0 : 1;
      }
    }
    std::memset(call.request.data, 0xee, call.request.bytes);  // whoever reads it now reads wrong bytes
  }

  bool all_over() const {
    return std::ranges::all_of(calls, [](const Call& call) { return call.over > 0; });
  }

  RpcOptions options;
  MessagePool pool;
  RpcEndpoint<NetworkPort> endpoint;
  std::deque<Call> calls;
  std::map<std::uint64_t, int> handled;
  std::deque<Waiting> waiting;
  bool answer_later = false;
  int wrong = 0;
};

void expect_credits_kept(const Peer& peer, std::uint16_t session) {
  const ClientSession& s = peer.endpoint.client(session);
  std::uint32_t sum = s.credits;
  for (const ClientSlot& slot : s.slots) {
    ASSERT_LE(slot.num_rx, slot.num_tx);
    sum += slot.num_tx - slot.num_rx;
  }
  ASSERT_EQ(sum, peer.options.credits);
}

// Two peers with one session from the first to the second.
struct Pair {
  Pair(const NetworkFaults& faults, const RpcOptions& options, std::uint32_t data)
      : network(2, faults, 1), client(network, 0, data, options), server(network, 1, data, options) {
    client.endpoint.open_client(RpcNetwork::address(1), 0);
    server.endpoint.open_server(RpcNetwork::address(0), 0);
  }
  void run(int steps) {
    for (int i = 0; i < steps && !client.all_over(); ++i) step();
  }
  void step() {
    test::StillNode node = network.node();
    RunEnd end;
    ASSERT_GE(client.endpoint.pass(node, end), 0);
    ASSERT_GE(server.endpoint.pass(node, end), 0);
    network.advance(kStep);
  }
  RpcNetwork network;
  Peer client, server;
};

std::string name(const PacketHeader& h) {
  const char* const kinds[] = {"request", "for response", "credit", "response"};
  return std::string(kinds[h.kind]) + " " + std::to_string(h.number);
}
std::vector<std::string> names(const std::vector<PacketHeader>& packets) {
  std::vector<std::string> out;
  for (const PacketHeader& h : packets) out.push_back(name(h));
  return out;
}

TEST(RpcPackets, CutMessagesAtTheDataOfAPacket) {
  const PacketCut cut{100};
  EXPECT_EQ(cut.packets(0), 1u);
  EXPECT_EQ(cut.packets(100), 1u);
  EXPECT_EQ(cut.packets(101), 2u);
  EXPECT_EQ(cut.length(101, 0), 100u);
  EXPECT_EQ(cut.length(101, 1), 1u);
  // 8 MB hold 8192 packets of 1024 bytes, each with 1008 bytes of data.
  EXPECT_EQ(PacketCut{1008}.most_bytes(), 8192u * 1008);
  // The numbers of a request and a response of that size fit into 14 bits.
  EXPECT_LT(2 * PacketCut{1008}.packets(PacketCut{1008}.most_bytes()) - 2, 1u << 14);
}

TEST(RpcBuffers, PutTheFirstHeaderBeforeTheDataAndTheOthersBehindIt) {
  MessagePool pool({100}, nullptr, false);
  const MessageBuffer buffer = pool.allocate(250);
  EXPECT_EQ(buffer.header(0) + kPacketHeaderBytes, buffer.data);
  EXPECT_GE(buffer.header(1), buffer.data + 250);
  EXPECT_EQ(buffer.header(2), buffer.header(1) + kPacketHeaderBytes);
  pool.free(buffer);
  EXPECT_EQ(pool.allocate(240).data, buffer.data) << "a freed buffer serves the next message of its size class";
}

TEST(RpcBuffers, RefuseMessagesThatNeedMorePacketsThanNumbersExist) {
  MessagePool pool({16}, nullptr, false);
  EXPECT_THROW(pool.allocate(16 * 8192 + 1), std::exception);
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
  RpcOptions options;
  options.rto = Picos(2'000'000);
  options.most_timeouts = 3;
  NetworkFaults dead;
  dead.loss = 1;
  Pair pair(dead, options, 100);
  for (std::uint64_t id = 1; id <= 12; ++id) pair.client.send(0, id, 32, 32, 32);
  pair.run(10'000);
  EXPECT_TRUE(pair.client.all_over());
  for (const Peer::Call& call : pair.client.calls) EXPECT_EQ(call.status, RpcStatus::no_answer);
  expect_credits_kept(pair.client, 0);
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
      std::vector<std::byte> packet(below(130));
      PacketHeader h{};
      h.type = below(3) & 0xff;
      h.bytes = below(i % 50 == 0 ? 1u << 24 : 600) & 0xffffff;
      h.session = below(2) & 0xffff;
      h.kind = below(4) & 3;
      h.number = below(9) & 0x3fff;
      h.request = below(2 * id + 16) & 0xffffffff;
      h.magic = kPacketMagic;
      std::memcpy(packet.data(), &h, std::min(packet.size(), sizeof h));
      pair.network.deliver(static_cast<std::uint32_t>(below(2)), packet);
      if (i % 20 == 0) pair.step();
      ASSERT_NO_FATAL_FAILURE(expect_credits_kept(pair.client, 0));
    }
  }
  EXPECT_GT(pair.server.endpoint.counts().unknown, 0u);
  EXPECT_GT(pair.client.endpoint.counts().unknown, 0u);
}

// What a random network and random endpoints must never break.
void run_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  NetworkFaults faults;
  const double losses[] = {0, 0, 1e-3, 1e-2, 0.1, 0.3};
  faults.loss = losses[pick(0, 5)];
  faults.repeat = pick(0, 2) == 0 ? 0.1 : 0;
  faults.jitter = Picos(static_cast<std::int64_t>(pick(0, 1) * pick(0, 4'000'000)));
  faults.reading = Picos(static_cast<std::int64_t>(pick(0, 1'000'000)));
  faults.room = static_cast<std::uint32_t>(pick(1, 64));
  RpcOptions options;
  options.credits = static_cast<std::uint32_t>(pick(1, 12));
  options.rto = Picos(static_cast<std::int64_t>(pick(5'000'000, 40'000'000)));
  options.most_timeouts = 1000;
  options.control = pick(0, 1) == 0 ? RpcControl::none : RpcControl::timely;
  options.timely.link = BytesPerSecond{static_cast<double>(pick(50, 3000)) * 1e6};
  options.batched_stamps = pick(0, 1) == 0;
  options.bypass_timely = pick(0, 1) == 0;
  options.bypass_limiter = pick(0, 1) == 0;
  options.preallocate = pick(0, 1) == 0;
  options.zero_copy = pick(0, 1) == 0;
  const auto data = static_cast<std::uint32_t>(pick(16, 200));
  const auto count = static_cast<std::uint32_t>(pick(2, 4));
  SCOPED_TRACE(testing::Message() << "seed " << seed);

  RpcNetwork network(count, faults, seed + 1);
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::uint32_t i = 0; i < count; ++i) {
    peers.push_back(std::make_unique<Peer>(network, i, data, options));
    peers.back()->answer_later = pick(0, 3) == 0;
  }
  // Session j of peer i calls peer j (skipping i), and is served there behind the sessions by which that one calls.
  const auto place = [](std::uint32_t of, std::uint32_t at) {
    return static_cast<std::uint16_t>(of < at ? of : of - 1);
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t j = 0; j < count; ++j) {
      if (j != i)
        peers[i]->endpoint.open_client(RpcNetwork::address(j), static_cast<std::uint16_t>(count - 1 + place(i, j)));
    }
    for (std::uint32_t j = 0; j < count; ++j) {
      if (j != i) peers[i]->endpoint.open_server(RpcNetwork::address(j), place(i, j));
    }
  }
  std::uint64_t id = 0;
  std::uint64_t asked = 0;
  for (const auto& peer : peers) {
    for (std::uint64_t calls = pick(1, 40); calls > 0; --calls, ++asked) {
      const auto bytes = static_cast<std::uint32_t>(pick(12, 12 * data)),
                 back = static_cast<std::uint32_t>(pick(0, 12 * data));
      peer->send(static_cast<std::uint16_t>(pick(0, count - 2)), ++id, bytes, back, back);
    }
  }
  bool over = false;
  for (int step = 0; step < 400'000 && !over; ++step) {
    over = true;
    bool moved = false;
    for (const auto& peer : peers) {
      test::StillNode node = network.node();
      RunEnd end;
      const int received = peer->endpoint.pass(node, end);
      ASSERT_GE(received, 0);
      moved = moved || received > 0;
      if (!peer->waiting.empty() && pick(0, 3) == 0) {
        peer->answer(peer->waiting.front());
        peer->waiting.pop_front();
      }
      for (std::uint16_t session = 0; session + 1u < count; ++session) {
        ASSERT_NO_FATAL_FAILURE(expect_credits_kept(*peer, session));
      }
      over = over && peer->all_over() && peer->endpoint.drained();
    }
    network.advance(moved ? kStep : 5 * kStep);
  }
  ASSERT_TRUE(over) << "calls without an end";
  EXPECT_EQ(network.changed, 0) << "a queue had bytes of a call that was over";
  std::uint64_t handled = 0;
  for (const auto& peer : peers) {
    EXPECT_EQ(peer->wrong, 0);
    EXPECT_EQ(peer->endpoint.counts().unknown, 0u);
    for (const Peer::Call& call : peer->calls) {
      EXPECT_EQ(call.over, 1);
      EXPECT_EQ(call.status, RpcStatus::answered);
    }
    for (const auto& [number, times] : peer->handled) EXPECT_EQ(times, 1) << "call " << number;
    handled += peer->handled.size();
    for (std::uint16_t session = 0; session + 1u < count; ++session) {
      EXPECT_EQ(peer->endpoint.client(session).credits, options.credits);
    }
  }
  EXPECT_EQ(handled, asked);
}

TEST(RpcProtocol, KeepsItsInvariantsOnRandomNetworks) {
#if defined(VERBSCOPE_ADDRESS_SANITIZER)
  constexpr std::uint64_t kSeeds = 60;
#else
  constexpr std::uint64_t kSeeds = 500;
#endif
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) run_random(seed);
}

TEST(RpcWheel, ReleasesPacketsInOrderWhenTheirSlotIsOver) {
  TimingWheel<int> wheel(Picos(100'000'000));
  std::vector<int> out;
  const auto take = [&out](int packet) { out.push_back(packet); };
  wheel.insert(1, Picos(700'000), Picos(0));    // in the slot from 0.5 to 1 us
  wheel.insert(2, Picos(900'000), Picos(0));    // the same
  wheel.insert(3, Picos(2'600'000), Picos(0));  // from 2.5 to 3 us
  wheel.reap(Picos(900'000), take);
  EXPECT_THAT(out, ElementsAre());
  wheel.reap(Picos(1'000'000), take);
  EXPECT_THAT(out, ElementsAre(1, 2));
  EXPECT_EQ(wheel.next_due(), Picos(3'000'000));
  wheel.reap(Picos(3'000'000), take);
  EXPECT_THAT(out, ElementsAre(1, 2, 3));
  EXPECT_EQ(wheel.size(), 0u);
}

TEST(RpcWheel, SendsAfterItsHorizonWhatIsDueLater) {
  TimingWheel<int> wheel(Picos(10'000'000));
  int released = 0;
  wheel.insert(1, Picos(900'000'000), Picos(0));
  wheel.reap(Picos(11'000'000), [&released](int) { ++released; });
  EXPECT_EQ(released, 1);
}

// By hand from the update of NSDI 2019, section 5.2.
TEST(RpcTimely, ChangesItsRateByTheRoundTripsAndTheirGradient) {
  TimelyParameters p;
  p.link = BytesPerSecond{1e9};
  Timely timely(p);
  EXPECT_TRUE(timely.at_link_rate());
  timely.sample(Picos(1'000'000), Picos(10'000'000));  // shorter than 2 us: ignored
  EXPECT_DOUBLE_EQ(timely.rate(), 1e9);
  // 2 ms, above 1 ms: 1 - 0.26 * (1 - 1/2) of the rate.
  timely.sample(Picos(2'000'000'000), Picos(10'000'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 1e9 * 0.87);
  // 100 us: the gradient is far below 0, so that the rate rises by 5 MB/s.
  timely.sample(Picos(100'000'000), Picos(20'000'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 0.87e9 + 5e6);
  // 10 us, below 50 us: once more.
  timely.sample(Picos(10'000'000), Picos(30'000'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 0.87e9 + 10e6);
}

TEST(RpcTimely, StaysBetweenTheFloorAndTheLink) {
  TimelyParameters p;
  p.link = BytesPerSecond{1e9};
  Timely timely(p);
  Picos now{0};
  for (int i = 0; i < 1000; ++i) timely.sample(Picos(5'000'000'000), now += Picos(10'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), p.floor);
  for (int i = 0; i < 1000; ++i) timely.sample(Picos(10'000'000), now += Picos(10'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 1e9);
}

}  // namespace
}  // namespace verbscope
