// The invariants of RPCs on random networks, which lose, repeat and reorder packets.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "tests/systems/rpc_peer.hpp"

namespace verbscope {
namespace {

using test::expect_credits_kept;
using test::kStep;
using test::NetworkFaults;
using test::Peer;
using test::RpcNetwork;

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
  faults.mark = pick(0, 1) == 0 ? 0 : 0.05;
  faults.jitter = Picos(static_cast<std::int64_t>(pick(0, 1) * pick(0, 4'000'000)));
  faults.reading = Picos(static_cast<std::int64_t>(pick(0, 1'000'000)));
  faults.room = static_cast<std::uint32_t>(pick(1, 64));
  RpcOptions options;
  options.credits = static_cast<std::uint32_t>(pick(1, 12));
  options.rto = Picos(static_cast<std::int64_t>(pick(7'000'000, 40'000'000)));
  options.most_timeouts = 1000;
  const RpcControl controls[] = {RpcControl::none, RpcControl::timely, RpcControl::dcqcn};
  options.control = controls[pick(0, 2)];
  options.timely.link = options.dcqcn.line = BytesPerSecond{static_cast<double>(pick(50, 3000)) * 1e6};
  options.batched_stamps = pick(0, 1) == 0;
  options.bypass_timely = pick(0, 1) == 0;
  options.bypass_limiter = pick(0, 1) == 0;
  options.preallocate = pick(0, 1) == 0;
  options.zero_copy = pick(0, 1) == 0;
  const auto data = static_cast<std::uint32_t>(pick(16, 200));
  const auto count = static_cast<std::uint32_t>(pick(2, 4));

  RpcNetwork network(count, faults, seed + 1);
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::uint32_t i = 0; i < count; ++i) {
    peers.push_back(std::make_unique<Peer>(network, i, data, options));
    peers.back()->answer_later = pick(0, 3) == 0;
    peers.back()->by_worker = pick(0, 2) == 0;
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
    EXPECT_EQ(peer->endpoint.counts().unknown + peer->endpoint.counts().strange, 0u);
    EXPECT_EQ(peer->late_bytes(), 0);
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
  test::for_each_seed(500, 60, run_random);
}

}  // namespace
}  // namespace verbscope
