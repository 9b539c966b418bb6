// Completion events: the guarantees of ibv_req_notify_cq(3), the cost of an event, and the time at which a sleeping
// thread wakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/event_rig.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;

constexpr unsigned kSolicited = IBV_SEND_SOLICITED;

// Time from sending a message now until its RECV's completion is visible.
Picos arrival_time() {
  EventRig rig;
  const Picos begin = rig.cluster.now();
  rig.send();
  Picos seen{0};
  EXPECT_EQ(rig.await(rig.cq, 1, kLong, &seen).size(), 1u);
  return seen - begin;
}

TEST(Event, WakesSleeperAfterInterruptLatency) {
  EventRig rig;
  rig.arm();
  rig.pass(kLong);
  const Picos begin = rig.cluster.now();
  rig.send();
  Picos awake{0};
  rig.in_thread([&](SimNode& node) {
    EXPECT_EQ(node.await_event(rig.channel, kTimeout), rig.cq);
    awake = node.now() - begin;
    EXPECT_EQ(rig.poll(), 1);
  });
  rig.cluster.run();
  // After the CQE: an event queue entry (64 + 24 bytes) and an interrupt (4 + 24 bytes) at 62.5 ps per byte, then the
  // wake-up.
  const double behind = (88 + 28) * 62.5;
  EXPECT_NEAR(static_cast<double>((awake - arrival_time() - kWakeup).count()), behind, 1'000);
}

TEST(Event, CostsDoorbellEntryAndInterrupt) {
  const auto counts = [](bool armed) {
    EventRig rig;
    if (armed) rig.arm();
    rig.pass(kLong);
    rig.send();
    rig.pass(kLong);
    return rig.cluster.pcie_counts(1);
  };
  const PcieCounts with = counts(true);
  const PcieCounts without = counts(false);
  EXPECT_EQ(with.mmio_doorbells - without.mmio_doorbells, 1u);
  EXPECT_EQ(with.mmio_wc_lines, without.mmio_wc_lines);
  EXPECT_EQ(with.dma_write_full_lines - without.dma_write_full_lines, 1u);
  EXPECT_EQ(with.dma_write_partial_lines - without.dma_write_partial_lines, 1u);
  EXPECT_EQ(with.payload_bytes_to_host - without.payload_bytes_to_host, 64u + 4);
  EXPECT_EQ(with.dma_read_lines, without.dma_read_lines);
}

TEST(Event, ArmingCostsThreadADoorbell) {
  EventRig rig;
  rig.in_thread([&](SimNode& node) {
    const Picos begin = node.now();
    rig.arm();
    EXPECT_EQ(node.now() - begin, rig.profile.host.doorbell);
  });
  rig.cluster.run();
}

TEST(Event, NoneWithoutArming) {
  EventRig rig;
  rig.send();
  EXPECT_EQ(rig.events(), 0);
}

TEST(Event, OnePerArmingForManyCompletions) {
  EventRig rig;
  rig.arm();
  rig.pass(kLong);
  rig.send();
  rig.send();
  EXPECT_EQ(rig.events(), 1);
  rig.send();
  EXPECT_EQ(rig.events(), 0);
  rig.arm();
  rig.pass(kLong);
  rig.send();
  EXPECT_EQ(rig.events(), 1);
}

TEST(Event, NoneForEarlierCompletions) {
  EventRig rig;
  rig.send();
  rig.pass(kLong);
  rig.arm();
  EXPECT_EQ(rig.events(), 0);
  rig.send();  // the request is still pending
  EXPECT_EQ(rig.events(), 1);
  EXPECT_EQ(rig.poll(), 2);
}

TEST(Event, OneWhenArmedTwice) {
  EventRig rig;
  rig.arm();
  rig.pass(kLong);
  rig.arm();
  rig.pass(kLong);
  rig.send();
  rig.send();
  EXPECT_EQ(rig.events(), 1);
}

TEST(Event, IsNeverLostBetweenArmingAndArrival) {
  const Picos arrival = arrival_time();
  // From long before the adapter writes the CQE, over while the doorbell is in flight, to while the CQE is: the
  // completion is not visible yet, so it counts as new.
  for (Picos before = Nanos(1); before < Nanos(900); before += Nanos(13)) {
    EventRig rig;
    const Picos begin = rig.cluster.now();
    rig.send();
    bool woken = false;
    rig.in_thread([&](SimNode& node) {
      node.compute(std::chrono::duration_cast<Nanos>(begin + arrival - before - node.now()));
      rig.arm();
      woken = node.await_event(rig.channel, kTimeout) == rig.cq;
    });
    rig.cluster.run();
    EXPECT_TRUE(woken) << before.count() << " ps before the completion can be seen";
  }
}

TEST(Event, SolicitedOnlyWaitsForSolicitedMessage) {
  EventRig rig;
  rig.arm(true);
  rig.pass(kLong);
  rig.send();
  EXPECT_EQ(rig.events(), 0);
  rig.send(kSolicited);
  EXPECT_EQ(rig.events(), 1);
}

TEST(Event, SolicitedOnlyWakesForAFailure) {
  EventRig rig;
  rig.arm(true);
  rig.pass(kLong);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(rig.b.provider().modify_qp(rig.qb, &attr, IBV_QP_STATE), 0);  // flushes the RECVs
  EXPECT_EQ(rig.events(), 1);
}

TEST(Event, SolicitedOnlyIgnoresSuccessfulSend) {
  EventRig rig;
  rig.arm(true);
  rig.pass(kLong);
  EXPECT_EQ(rig.b.post(rig.qb, {.length = 8, .flags = kSignaled | kSolicited}), 0);
  EXPECT_EQ(rig.events(), 0);
  EXPECT_EQ(rig.poll(), 1);
}

TEST(Event, WiderOfTwoArmingsCounts) {
  for (const bool wide_first : {false, true}) {
    EventRig rig;
    rig.arm(!wide_first);
    rig.arm(wide_first);
    rig.pass(kLong);
    rig.send();
    EXPECT_EQ(rig.events(), 1) << wide_first;
  }
}

TEST(Event, PendingOneIsConsumedAtOnce) {
  EventRig rig;
  rig.arm();
  rig.pass(kLong);
  rig.send();
  rig.pass(kLong);
  rig.in_thread([&](SimNode& node) {
    const Picos begin = node.now();
    EXPECT_EQ(node.await_event(rig.channel, kTimeout), rig.cq);
    EXPECT_EQ(node.now(), begin);
  });
  rig.cluster.run();
}

TEST(Event, WaitEndsAtTimeout) {
  EventRig rig;
  rig.in_thread([&](SimNode& node) {
    const Picos begin = node.now();
    EXPECT_EQ(node.await_event(rig.channel, kTimeout), nullptr);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_EQ(node.now() - begin, Picos(kTimeout));
  });
  rig.cluster.run();
}

TEST(Event, WakesOneOfTwoSleepers) {
  EventRig rig;
  rig.arm();
  rig.pass(kLong);
  rig.send();
  int woken = 0;
  for (int i = 0; i < 2; ++i) {
    rig.in_thread([&](SimNode& node) { woken += node.await_event(rig.channel, kTimeout) != nullptr ? 1 : 0; });
  }
  rig.cluster.run();
  EXPECT_EQ(woken, 1);
}

TEST(Event, NamesItsQueue) {
  EventRig rig;
  Provider& provider = rig.b.provider();
  ibv_cq* const other = provider.create_cq(rig.b.context(), 16, rig.channel, 0);
  EXPECT_EQ(provider.destroy_comp_channel(rig.channel), EBUSY);
  ibv_qp* const qp = rig.make_qp(other);
  ASSERT_EQ(bring_up(rig.b, qp, rig.options, 0, rig.qa->qp_num), 0);
  rig.b.post_recvs(qp, 0, 64, 1);
  EXPECT_EQ(ibv_req_notify_cq(other, 0), 0);
  rig.arm();
  rig.pass(kLong);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(provider.modify_qp(qp, &attr, IBV_QP_STATE), 0);
  rig.pass(kLong);
  rig.send();
  std::vector<ibv_cq*> order;
  rig.in_thread([&](SimNode& node) {
    while (ibv_cq* from = node.await_event(rig.channel, kTimeout)) order.push_back(from);
  });
  rig.cluster.run();
  EXPECT_THAT(order, ElementsAre(other, rig.cq));
  EXPECT_EQ(provider.destroy_qp(qp), 0);
  EXPECT_EQ(provider.destroy_cq(other), 0);
}

TEST(Event, OfDestroyedQueueIsRemoved) {
  EventRig rig;
  Provider& provider = rig.b.provider();
  rig.arm();
  rig.pass(kLong);
  rig.send();
  rig.pass(kLong);
  ASSERT_EQ(provider.destroy_qp(rig.qb), 0);
  ASSERT_EQ(provider.destroy_cq(rig.cq), 0);
  rig.cq = provider.create_cq(rig.b.context(), 16, rig.channel, 0);
  rig.qb = rig.make_qp(rig.cq);
  EXPECT_EQ(rig.events(), 0);
}

TEST(Event, OfDestroyedQueueWithDoorbellInFlightIsDropped) {
  EventRig rig;
  ibv_cq* const cq = rig.b.provider().create_cq(rig.b.context(), 16, rig.channel, 0);
  EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
  EXPECT_EQ(rig.b.provider().destroy_cq(cq), 0);
  EXPECT_EQ(rig.events(), 0);
}

}  // namespace
}  // namespace verbscope::test
