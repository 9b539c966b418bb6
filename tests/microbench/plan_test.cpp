// The QPs of all machines and their partners, and the defaults of a plan.
#include "microbench/bench/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/error.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Plan kOut;
const Plan kIn{.operation = {.driver = Side::client}};

std::string refusal(const Options& options, const FabricFacts& facts, const Plan& draft = kOut) {
  try {
    make_plan(options, facts, draft);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DefaultSignalEvery, IsAtMost64AndHalfTheQueue) {
  EXPECT_EQ(default_signal_every(1, 128, {}), 64u);
  EXPECT_EQ(default_signal_every(1, 32, {}), 16u);
  EXPECT_EQ(default_signal_every(1, 1, {}), 1u);
}

TEST(DefaultSignalEvery, FitsThePostListSoThatTheRingStaysShort) {
  EXPECT_EQ(default_signal_every(16, 128, {}), 64u);
  EXPECT_EQ(default_signal_every(3, 128, {}), 63u);    // 21 lists of 3
  EXPECT_EQ(default_signal_every(100, 128, {}), 25u);  // at most 128 + 1 - 100 = 29, and 25 divides 100
  EXPECT_EQ(default_signal_every(128, 128, {}), 1u);
}

TEST(DefaultSignalEvery, LeavesASignaledRequestInAFullQueue) {
  for (std::uint32_t depth = 1; depth <= 130; ++depth) {
    for (std::uint32_t list = 1; list <= depth; ++list) {
      EXPECT_LE(default_signal_every(list, depth, {}) + list, depth + 1) << list << " of " << depth;
    }
  }
}

TEST(DefaultSignalEvery, DividesAnExactCount) {
  EXPECT_EQ(default_signal_every(1, 128, 1000), 50u);
  EXPECT_EQ(default_signal_every(16, 128, 1009), 1u);  // a prime
}

TEST(PlanQps, ConnectedQpsBelongToOneClientEach) {
  const Topology t{
      .transport = Transport::rc, .threads = 2, .qps_per_thread = 3, .clients = 2, .client_threads = 2, .ports = 2};
  const std::vector<QpPlan> server = plan_qps(t, Side::server, 0);
  ASSERT_EQ(server.size(), 6u);
  for (std::uint32_t k = 0; k < 6; ++k) {
    EXPECT_EQ(server[k].port, k % 2);
    EXPECT_EQ(server[k].thread, k / 3);
    ASSERT_EQ(server[k].partners.size(), 1u);
    EXPECT_EQ(server[k].partners[0].node, k % 2);
    EXPECT_EQ(server[k].partners[0].qp, k / 2);
  }
  EXPECT_EQ(plan_qps(t, Side::client, 1).size(), 3u);
}

TEST(PlanQps, BothSidesAgreeOnEveryConnection) {
  for (const Transport transport : {Transport::rc, Transport::ud}) {
    const Topology t{
        .transport = transport, .threads = 3, .qps_per_thread = 2, .clients = 4, .client_threads = 3, .ports = 2};
    const std::vector<QpPlan> server = plan_qps(t, Side::server, 0);
    for (std::uint32_t c = 0; c < t.clients; ++c) {
      const std::vector<QpPlan> client = plan_qps(t, Side::client, c);
      for (std::uint32_t m = 0; m < client.size(); ++m) {
        ASSERT_EQ(client[m].partners.size(), 1u);
        const QpPlan& other = server[client[m].partners[0].qp];
        EXPECT_EQ(other.port, client[m].port);
        EXPECT_TRUE(std::ranges::any_of(other.partners, [&](const Partner& p) { return p.node == c && p.qp == m; }));
        EXPECT_EQ(client[m].thread, m % 3);
      }
    }
  }
}

TEST(PlanQps, PairsConnectThreadsOfTheSameNumber) {
  Topology t{.transport = Transport::rc, .threads = 3, .clients = 3, .client_threads = 3, .ports = 2};
  t.qps_per_pair = 2;
  const auto qps_of = [&](std::uint32_t machine) {
    return plan_qps(t, machine == 0 ? Side::server : Side::client, machine == 0 ? 0 : machine - 1);
  };
  for (std::uint32_t machine = 0; machine < t.machines(); ++machine) {
    const std::vector<QpPlan> qps = qps_of(machine);
    const std::vector<std::uint32_t> peers = peer_machines(t, machine);
    EXPECT_EQ(qps.size(), 3u * 2 * 3);
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> pairs;  // thread, peer
    for (std::uint32_t k = 0; k < qps.size(); ++k) {
      ASSERT_EQ(qps[k].partners.size(), 1u);
      const Partner& partner = qps[k].partners[0];
      const std::uint32_t peer = peers.at(partner.node);
      EXPECT_NE(peer, machine);
      ++pairs[{qps[k].thread, peer}];
      const QpPlan other = qps_of(peer).at(partner.qp);
      EXPECT_EQ(other.thread, qps[k].thread);
      EXPECT_EQ(other.port, qps[k].thread % 2);
      EXPECT_EQ(other.partners[0].qp, k);
      EXPECT_EQ(peer_machines(t, peer).at(other.partners[0].node), machine);
    }
    for (const auto& [pair, count] : pairs) EXPECT_EQ(count, 2);
    EXPECT_EQ(pairs.size(), 3u * 3);
  }
}

// Machine 0 has three threads, and each of two clients has two.
TEST(PlanQps, PairsDatagramQpsWithThoseOfAllThreads) {
  Topology t{.transport = Transport::ud, .threads = 3, .clients = 2, .client_threads = 2, .ports = 1};
  t.qps_per_pair = 1;
  t.any_thread = true;
  const std::vector<QpPlan> server = plan_qps(t, Side::server, 0), client = plan_qps(t, Side::client, 1);
  ASSERT_EQ(server.size(), 3u);
  ASSERT_EQ(client.size(), 2u);
  EXPECT_EQ(server[0].partners.size(), 2u * 2);
  EXPECT_EQ(client[0].partners.size(), 3u + 2);  // of the server and of the other client
  for (const Partner& partner : client[0].partners) {
    EXPECT_LT(partner.qp, peer_machines(t, 2).at(partner.node) == 0 ? 3u : 2u);
  }
}

TEST(PlanQps, DatagramQpHasEveryClientAsPartner) {
  const Topology t{
      .transport = Transport::ud, .threads = 1, .qps_per_thread = 2, .clients = 3, .client_threads = 8, .ports = 1};
  EXPECT_EQ(plan_qps(t, Side::server, 0)[1].partners.size(), 3u);
  const std::vector<QpPlan> client = plan_qps(t, Side::client, 2);
  EXPECT_EQ(client.size(), 2u);
  EXPECT_EQ(used_threads(client), 2u);  // not 8: a thread without a QP would do nothing
}

TEST(PlanQps, ClientThreadsHaveQpsOfTheirOwn) {
  const Topology t{.transport = Transport::uc,
                   .threads = 2,
                   .qps_per_thread = 3,
                   .clients = 2,
                   .client_threads = 3,
                   .ports = 2,
                   .client_qps = ClientQps{.connected = true, .datagram = true}};
  const std::vector<QpPlan> server = plan_qps(t, Side::server, 0);
  ASSERT_EQ(server.size(), 6u + 2 * 3 * 2);  // one for each client thread; three on each of two ports for each thread
  for (std::uint32_t g = 0; g < 6; ++g) {
    EXPECT_EQ(server[g].transport, Transport::uc);
    EXPECT_EQ(server[g].thread, g % 2);
  }
  for (std::uint32_t k = 6; k < 18; ++k) {
    EXPECT_EQ(server[k].transport, Transport::ud);
    EXPECT_EQ(server[k].thread, (k - 6) / 6);
    EXPECT_EQ(server[k].partners.size(), 3u);  // of six client threads those on its port
  }
  for (std::uint32_t c = 0; c < 2; ++c) {
    const std::vector<QpPlan> client = plan_qps(t, Side::client, c);
    ASSERT_EQ(client.size(), 6u);
    for (std::uint32_t m = 0; m < 6; ++m) {
      EXPECT_EQ(client[m].thread, m % 3);
      EXPECT_EQ(client[m].port, (c * 3 + m % 3) % 2);
      EXPECT_EQ(client[m].partners.size(), m < 3 ? 1u : 6u);
      for (const Partner& partner : client[m].partners) {
        const QpPlan& other = server[partner.qp];
        EXPECT_EQ(other.port, client[m].port);
        EXPECT_EQ(other.transport, client[m].transport);
        EXPECT_TRUE(std::ranges::any_of(other.partners, [&](const Partner& p) { return p.node == c && p.qp == m; }));
      }
    }
  }
}

TEST(PlanQps, ClientThreadsMayHaveOneKindOfQp) {
  Topology t{.threads = 2, .qps_per_thread = 1, .clients = 2, .client_threads = 2, .ports = 1};
  t.client_qps = ClientQps{.connected = true};
  EXPECT_EQ(plan_qps(t, Side::server, 0).size(), 4u);
  EXPECT_EQ(plan_qps(t, Side::client, 1).size(), 2u);
  t.transport = Transport::ud;
  t.client_qps = ClientQps{.datagram = true};
  EXPECT_EQ(plan_qps(t, Side::server, 0).size(), 2u);
  EXPECT_EQ(plan_qps(t, Side::client, 1)[0].partners.size(), 2u);
}

TEST(MakePlan, ChoosesDefaultsByFabric) {
  const FabricFacts sim{.simulated = true, .server_cores = 14, .client_cores = 14, .ports = 2, .default_clients = 3};
  Options options;
  options.connection = Transport::ud;
  const Plan plan = make_plan(options, sim, kOut);
  EXPECT_EQ(plan.operation.payload, 64u);
  EXPECT_FALSE(plan.operation.inlined);
  EXPECT_EQ(plan.topology.clients, 3u);
  EXPECT_EQ(plan.topology.client_threads, 1u);                           // they receive
  EXPECT_EQ(make_plan(options, sim, kIn).topology.client_threads, 14u);  // they send
  EXPECT_EQ(plan.schedule.duration, std::chrono::milliseconds(1));
  const Plan host = make_plan(options, {.server_cores = 2, .client_cores = 2}, kOut);
  EXPECT_EQ(host.topology.client_threads, 1u);
  EXPECT_EQ(host.schedule.duration, std::chrono::seconds(3));
}

// If requests are messages: RECVs for those of all client threads, and 128 for a polling pass, rounded up to 64.
TEST(MakePlan, ServerHasRecvsForTheRequestsOfAllClients) {
  const FabricFacts sim{.simulated = true, .server_cores = 14, .client_cores = 14};
  Options options;
  options.connection = Transport::ud;
  options.client_threads = 3;
  const auto depth_of = [&](std::uint32_t clients, std::uint32_t at_once) {
    options.clients = clients;
    return make_plan(options, sim, {.operation = {.driver = Side::client, .requests_per_client_thread = at_once}})
        .operation.rx_depth;
  };
  EXPECT_EQ(depth_of(17, 0), 512u);
  EXPECT_EQ(depth_of(17, 4), 512u);
  EXPECT_EQ(depth_of(20, 33), 2112u);  // 60 * 33 + 128 = 2108
  EXPECT_EQ(depth_of(186, 33), 8192u);
  options.rx_depth = 64;
  EXPECT_EQ(depth_of(20, 33), 64u);
}

TEST(MakePlan, InlinesPayloadsUpToTheInlineSizeOnly) {
  Options options;
  options.inline_size = 60;
  options.size = 60;
  EXPECT_TRUE(make_plan(options, {}, kOut).operation.inlined);
  options.size = 61;
  EXPECT_FALSE(make_plan(options, {}, kOut).operation.inlined);
  options.size = 0;
  EXPECT_FALSE(make_plan(options, {}, kOut).operation.inlined);
}

TEST(MakePlan, ConnectedQpsLimitTheDefaultClients) {
  Options options;
  EXPECT_EQ(make_plan(options, {.simulated = true, .default_clients = 4}, kOut).topology.clients, 1u);
  options.clients = 4;
  EXPECT_THAT(refusal(options, {.simulated = true}), HasSubstr("--clients 4: the server's 1 x 1 connected QPs"));
}

TEST(MakePlan, RefusesMoreThreadsThanCores) {
  Options options;
  options.threads = 3;
  EXPECT_THAT(refusal(options, {.server_cores = 2, .client_cores = 2}),
              HasSubstr("--threads 3 is more than the 2 cores"));
  options.threads = 2;
  options.client_threads = 15;
  EXPECT_THAT(refusal(options, {.simulated = true, .server_cores = 14, .client_cores = 14}),
              HasSubstr("--client_threads 15 is more than the 14 cores"));
}

TEST(MakePlan, RefusesItersThatAreNoMultipleOfCqMod) {
  Options options;
  options.iters = 1000;
  options.cq_mod = 64;
  EXPECT_THAT(refusal(options, {}), HasSubstr("not a multiple of --cq_mod 64"));
  EXPECT_EQ(refusal(options, {}, kIn), "accepted");  // a receiver counts one by one
}

TEST(MakePlan, RefusesAVerbThatTheTransportLacks) {
  Options options;
  options.connection = Transport::uc;
  EXPECT_EQ(refusal(options, {}, {.operation = {.verb = Verb::read}}), "--connection UC: it has no read");
  EXPECT_EQ(refusal(options, {}, {.operation = {.verb = Verb::write}}), "accepted");
  options.connection = Transport::ud;
  EXPECT_EQ(refusal(options, {}, {.operation = {.verb = Verb::write}}), "--connection UD: it has no write");
}

TEST(MakePlan, WindowReplacesTheQueueDepth) {
  Options options;
  EXPECT_EQ(make_plan(options, {}, {.operation = {.most_outstanding = 8}}).operation.outstanding(), 8u);
  EXPECT_EQ(make_plan(options, {}, {.operation = {.most_outstanding = 8}}).operation.signal_every,
            4u);  // half of what may be outstanding
  EXPECT_EQ(make_plan(options, {}, {.operation = {.most_outstanding = 128}}).operation.outstanding(), 128u);
  EXPECT_THAT(refusal(options, {}, {.operation = {.most_outstanding = 129}}),
              HasSubstr("--window 129 is more than the send queue holds (--tx_depth 128)"));
  options.post_list = 16;
  EXPECT_THAT(refusal(options, {}, {.operation = {.most_outstanding = 8}}),
              HasSubstr("--post_list 16 is more than --window 8"));
  options.post_list = 4;
  options.cq_mod = 8;
  EXPECT_THAT(refusal(options, {}, {.operation = {.most_outstanding = 8}}),
              HasSubstr("--cq_mod 8 with --post_list 4 can wait for ever"));
}

TEST(MakePlan, RefusesInvalidOneSidedOptions) {
  Options options;
  options.header_only = true;
  EXPECT_THAT(refusal(options, {}, {.operation = {.verb = Verb::write}}), HasSubstr("--header_only"));
  Options inlined;
  inlined.inline_size = 64;
  EXPECT_THAT(refusal(inlined, {}, {.operation = {.verb = Verb::read}}), HasSubstr("a READ sends no payload"));
  EXPECT_THAT(refusal({}, {.alone = true}, {.operation = {.driver = Side::client, .counted = Side::client}}),
              HasSubstr("no clients"));
}

TEST(MakePlan, ClientItersAreAMultipleOfCqModOnEachQp) {
  const Plan draft{.operation = {.verb = Verb::write, .driver = Side::client, .counted = Side::client}};
  Options options;
  options.iters = 100;
  options.qp = 3;
  EXPECT_EQ(100 % make_plan(options, {}, draft).operation.signal_every, 0u);  // not only 300: QPs are dealt out
}

}  // namespace
}  // namespace verbscope
