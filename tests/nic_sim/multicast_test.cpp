// Datagrams to multicast groups: which ports they use, which QPs get them, and that partitions change nothing. What a
// program sees of them is in tests/conformance/multicast_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/nic_sim/two_nodes.hpp"
#include "verbs/endpoint.hpp"

namespace verbscope::test {
namespace {

constexpr int kNodes = 6;
constexpr std::uint16_t kLid = 0xc001;
constexpr std::uint32_t kAllQps = 0xffffff;
constexpr std::chrono::microseconds kSettled(300);
constexpr std::uint32_t kMulticastRoom = 2048;  // of a RECV

// Node 0 sends. The others have a QP each.
class Cluster {
 public:
  explicit Cluster(const Profile& profile, const SimWork& work = {}) : cluster(profile, kNodes, 1, work) {
    for (int i = 0; i < kNodes; ++i) {
      nodes_.emplace_back(cluster, i);
      qps_.push_back(add_qp(i));
    }
    ibv_ah_attr attr = path();
    ah_ = node(0).provider().create_ah(node(0).pd(), &attr);
    EXPECT_NE(ah_, nullptr);
  }
  ~Cluster() {
    for (const Member& each : members_) EXPECT_EQ(each.provider->detach_mcast(each.qp, &group, kLid), 0);
    EXPECT_EQ(node(0).provider().destroy_ah(ah_), 0);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  TestNode& node(int i) { return nodes_[static_cast<std::size_t>(i)]; }
  ibv_qp* qp(int i) { return qps_[static_cast<std::size_t>(i)]; }
  ibv_qp* add_qp(int i) {
    ibv_qp* made = node(i).make_qp(IBV_QPT_UD);
    EXPECT_EQ(bring_up(node(i), made, {}, 0, 0), 0);
    return made;
  }
  // Attaches the QP, which gets `recvs` RECVs.
  void join(int i, ibv_qp* member, int recvs = 1) {
    Provider& provider = node(i).provider();
    ASSERT_EQ(provider.attach_mcast(member, &group, kLid), 0);
    members_.push_back({&provider, member});
    EXPECT_EQ(node(i).post_recvs(member, kIn, kMulticastRoom, recvs), 0);
  }
  ibv_ah_attr path() {
    ibv_ah_attr attr{};
    attr.port_num = 1;
    attr.dlid = kLid;
    attr.is_global = 1;
    attr.grh.dgid = group;
    return attr;
  }
  int send(std::uint32_t length, std::uint32_t to = kAllQps) {
    return node(0).post(qp(0), {.length = length}, ah_, to);
  }
  Picos into(int i) { return cluster.usage_times(i).ports_in.front(); }
  Picos out_of(int i) { return cluster.usage_times(i).ports_out.front(); }
  void pass(Nanos time) {
    cluster.add_thread(0, cores_used_++, [time](SimNode& self) {
      self.compute(time);
      self.poll_memory();
    });
    cluster.run();
  }

  SimCluster cluster;
  const ibv_gid group = gid_from_text("ff12::5");

 private:
  struct Member {
    Provider* provider;
    ibv_qp* qp;
  };
  std::deque<TestNode> nodes_;
  std::vector<ibv_qp*> qps_;
  std::vector<Member> members_;
  ibv_ah* ah_ = nullptr;
  int cores_used_ = 0;
};

TEST(Multicast, LeavesThePortOnceAndReachesMembersOnly) {
  Cluster all(steady_profile());
  for (const int i : {1, 3, 5}) all.join(i, all.qp(i));
  all.join(3, all.add_qp(3));
  ASSERT_EQ(all.send(1000), 0);
  all.pass(kSettled);
  EXPECT_EQ(all.cluster.nic_counts(0).packets_sent, 1u);
  EXPECT_GT(all.out_of(0), Picos(0));
  for (int i = 0; i < kNodes; ++i) {
    EXPECT_EQ(all.into(i), i % 2 == 1 ? all.out_of(0) : Picos(0)) << i;
    EXPECT_EQ(all.node(i).poll_recvs().size(), i == 3 ? 2u : i % 2 == 1 ? 1u : 0u) << i;
    EXPECT_EQ(all.cluster.nic_counts(i).dropped_refused, 0u) << i;
  }
}

// Without IGMP snooping a switch floods, and adapters drop frames to addresses that they do not have.
TEST(Multicast, FloodsEthernet) {
  Cluster all(steady_profile("cx4"));
  for (const int i : {1, 3}) all.join(i, all.qp(i));
  ASSERT_EQ(all.send(1000), 0);
  all.pass(kSettled);
  EXPECT_EQ(all.cluster.nic_counts(0).packets_sent, 1u);
  for (int i = 0; i < kNodes; ++i) {
    EXPECT_EQ(all.into(i), all.out_of(0)) << i;
    EXPECT_EQ(all.node(i).poll_recvs().size(), i == 1 || i == 3 ? 1u : 0u) << i;
    EXPECT_EQ(all.cluster.nic_counts(i).dropped_refused, 0u) << i;
  }
}

// The network has room for one packet: each must give back what it took, whether for one QP, for several or for none.
TEST(Multicast, GivesRoomBack) {
  for (const char* name : {"cib", "cx4"}) {
    Profile profile = steady_profile(name);
    if (profile.fabric.flow_control != FlowControl::pfc) profile.nic.input_buffer = Bytes(4096 + 256);
    Cluster all(profile);
    constexpr int kMessages = 40;
    for (const int i : {1, 3}) all.join(i, all.qp(i), kMessages);
    all.join(3, all.add_qp(3), kMessages);
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(all.send(1000), 0);
      all.pass(std::chrono::microseconds(20));
    }
    EXPECT_EQ(all.node(1).poll_recvs().size(), std::size_t{kMessages}) << name;
    EXPECT_EQ(all.node(3).poll_recvs().size(), std::size_t{2 * kMessages}) << name;
    EXPECT_LT(all.cluster.packets_allocated(), 30u) << name;
  }
}

TEST(Multicast, ToOneQpNumberReachesNoQp) {
  Cluster all(steady_profile());
  all.join(1, all.qp(1));
  ASSERT_EQ(all.send(8, all.qp(1)->qp_num), 0);
  all.pass(kSettled);
  EXPECT_TRUE(all.node(1).poll_recvs().empty());
  EXPECT_EQ(all.cluster.nic_counts(1).dropped_refused, 1u);
}

TEST(Multicast, NeedsAHeaderWithTheGroup) {
  Cluster all(steady_profile());
  Provider& provider = all.node(0).provider();
  const auto error_of = [&](auto change) {
    ibv_ah_attr attr = all.path();
    change(attr);
    errno = 0;
    EXPECT_EQ(provider.create_ah(all.node(0).pd(), &attr), nullptr);
    return errno;
  };
  EXPECT_EQ(error_of([](ibv_ah_attr& attr) { attr.is_global = 0; }), EINVAL);
  EXPECT_EQ(error_of([](ibv_ah_attr& attr) { attr.dlid = 3; }), EINVAL);
  EXPECT_EQ(error_of([](ibv_ah_attr& attr) { attr.dlid = 0xffff; }), EINVAL);
  EXPECT_EQ(error_of([](ibv_ah_attr& attr) { attr.grh.dgid = gid_from_text("::ffff:239.0.0.1"); }), EINVAL);
}

TEST(Multicast, IsNoPeerOfAConnection) {
  Cluster all(steady_profile());
  ibv_qp* qp = all.node(0).make_qp(IBV_QPT_RC);
  EXPECT_EQ(bring_up(all.node(0), qp, {}, 1, 0x100), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  Provider& provider = all.node(0).provider();
  ASSERT_EQ(provider.modify_qp(qp, &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  ASSERT_EQ(provider.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr = all.path();
  EXPECT_EQ(provider.modify_qp(qp, &attr,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            EINVAL);
}

// What the receivers see, and when.
std::vector<std::int64_t> times_of(const Profile& profile, const SimWork& work) {
  constexpr int kMessages = 50;
  Cluster all(profile, work);
  std::vector<std::vector<std::int64_t>> logs(kNodes);
  for (int i = 1; i < kNodes; ++i) {
    all.join(i, all.qp(i), kMessages);
    all.cluster.add_thread(i, 0, [&, i](SimNode& self) {
      for (int received = 0; received < kMessages;) {
        ibv_wc wc{};
        if (ibv_poll_cq(all.node(i).recv_cq(), 1, &wc) == 0) {
          self.idle();
          continue;
        }
        ++received;
        logs[static_cast<std::size_t>(i)].push_back(self.now().count());
      }
    });
  }
  all.cluster.add_thread(0, 0, [&](SimNode& self) {
    for (int sent = 0; sent < kMessages; ++sent) {
      EXPECT_EQ(all.send(1000), 0);
      self.compute(std::chrono::microseconds(2));
    }
  });
  all.cluster.run();
  std::vector<std::int64_t> together;
  for (const auto& log : logs) together.insert(together.end(), log.begin(), log.end());
  return together;
}

TEST(Multicast, IsTheSameInAnyPartition) {
  for (const char* name : {"cib", "cx4"}) {
    const Profile profile = steady_profile(name);
    const std::vector<std::int64_t> by_one = times_of(profile, {});
    EXPECT_EQ(by_one.size(), 250u) << name;
    EXPECT_EQ(times_of(profile, {{0, 1, 0, 1, 2, 2}, 2}), by_one) << name;
    EXPECT_EQ(times_of(profile, {{0, 1, 2, 3, 4, 5}, 3}), by_one) << name;
  }
}

}  // namespace
}  // namespace verbscope::test
