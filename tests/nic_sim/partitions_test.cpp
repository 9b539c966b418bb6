// A cluster gives the same run, event for event, whether one or several threads of this machine simulate its nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "nic_sim/profile/random.hpp"
#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using std::chrono::microseconds;

constexpr int kNodes = 6;

// Receivers are slow and buffers small, so that the switch has to hold packets. `chance`: one packet in a hundred is
// lost. Without it all nodes are alike, and many events have equal times.
Profile crowded(bool chance) {
  Profile profile = chance ? load_profile("cib") : steady_profile();
  profile.host.cores = 2;
  profile.fabric.loss_probability = chance ? 0.01 : 0;
  profile.nic.receive_packet = std::chrono::microseconds(1);
  profile.nic.input_buffer = Bytes(4096 + 256);
  return profile;
}

// Racks of two nodes with a slow uplink. The switches mark packets, and pause senders or drop packets.
Profile ethernet(FlowControl flow_control) {
  Profile profile = load_profile("cx4");
  profile.host.cores = 2;
  profile.fabric.flow_control = flow_control;
  profile.nic.congestion_control = CongestionControl::dcqcn;
  profile.fabric.switches.buffer = Bytes(60'000);
  profile.fabric.switches.pfc_xoff = Bytes(4'000);
  profile.fabric.switches.pfc_xon = Bytes(2'000);
  profile.fabric.switches.rack_nodes = 2;
  profile.fabric.switches.uplinks = 1;
  profile.fabric.switches.uplink_rate = BytesPerSecond{1.5e9};
  return profile;
}

// Every node sends READs, WRITEs and atomics to its neighbour, and floods the node after that with datagrams.
class Ring {
 public:
  Ring(const Profile& profile, const SimWork& work)
      : options_{.timeout = 3,
                 .mtu = profile.wire.mtu.value < 4096 ? IBV_MTU_1024 : IBV_MTU_4096,
                 .global = facts(profile.wire.link_type).ethernet},
        cluster_(profile, kNodes, 7, work) {
    for (int i = 0; i < kNodes; ++i) nodes_.emplace_back(cluster_, i, options_);
    for (int i = 0; i < kNodes; ++i) connect(i);
    for (Node& node : nodes_) {
      cluster_.add_thread(node.number, 0, [&, this](SimNode& self) { one_sided(node, self); });
      cluster_.add_thread(node.number, 1, [&, this](SimNode& self) { datagrams(node, self); });
    }
  }

  // Runs the cluster. Returns what the threads saw and when, and the counts up to a certain time.
  std::vector<std::uint64_t> run() {
    std::vector<std::uint64_t> all;
    cluster_.at(microseconds(300), [&] {
      for (int i = 0; i < kNodes; ++i) {
        for (const std::uint64_t value : values(cluster_.pcie_counts(i))) all.push_back(value);
        for (const std::uint64_t value : values(cluster_.nic_counts(i))) all.push_back(value);
        all.push_back(static_cast<std::uint64_t>(cluster_.busy_time(i).count()));
        if (const auto counts = cluster_.ethernet_counts(i)) {
          EthernetCounts::each(*counts, [&](const char*, std::uint64_t value) { all.push_back(value); });
          network_ += counts->dropped_full_buffer + counts->rx_pauses;
        }
      }
      stop_ = true;
    });
    cluster_.run();
    for (const Node& node : nodes_) {
      for (const auto& log : node.logs) all.insert(all.end(), log.begin(), log.end());
    }
    return all;
  }

  std::uint64_t completions() const {
    std::uint64_t sum = 0;
    for (const Node& node : nodes_) sum += node.logs[0].size() + node.logs[1].size() / 2;
    return sum;
  }
  // Drops and pauses up to that time.
  std::uint64_t network() const { return network_; }
  std::uint64_t credit_waits() const {
    std::uint64_t sum = 0;
    for (int i = 0; i < kNodes; ++i) sum += cluster_.nic_counts(i).credit_waits;
    return sum;
  }

 private:
  struct Node {
    Node(SimCluster& cluster, int n, const QpOptions& options) : number(n), verbs(cluster, n) {
      connected[0] = verbs.make_qp(IBV_QPT_RC, options);
      connected[1] = verbs.make_qp(IBV_QPT_RC, options);
      datagram = verbs.make_qp(IBV_QPT_UD);
      datagram_cq = datagram->recv_cq;
    }

    int number;
    TestNode verbs;
    ibv_qp* connected[2];  // to the next node, and to the previous one
    ibv_qp* datagram;
    ibv_cq* datagram_cq;
    ibv_ah* ah = nullptr;
    std::vector<std::uint64_t> logs[2];  // by thread: times and ids
  };

  Node& after(int node, int distance = 1) { return nodes_[static_cast<std::size_t>((node + distance) % kNodes)]; }

  void connect(int i) {
    Node& node = after(i, 0);
    Node& next = after(i);
    EXPECT_EQ(bring_up(node.verbs, node.connected[0], options_, next.number, next.connected[1]->qp_num), 0);
    EXPECT_EQ(bring_up(next.verbs, next.connected[1], options_, node.number, node.connected[0]->qp_num), 0);
    EXPECT_EQ(bring_up(node.verbs, node.datagram, {}, 0, 0), 0);
    node.ah = node.verbs.make_ah(after(i, 2).number, options_);
    EXPECT_EQ(node.verbs.post_recvs(node.datagram, kIn, 1064, 64), 0);
  }

  void post_one_sided(Node& node, sim::Random& random) {
    constexpr ibv_wr_opcode kVerbs[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD};
    TestNode& peer = after(node.number).verbs;
    ibv_sge piece = node.verbs.sge(random.below(64) * 8, 8);
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = kVerbs[random.below(3)];
    wr.send_flags = kSignaled;
    const auto address = reinterpret_cast<std::uint64_t>(peer.memory(random.below(64) * 8));
    if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic.remote_addr = address;
      wr.wr.atomic.compare_add = 1;
      wr.wr.atomic.rkey = peer.mr()->rkey;
    } else {
      wr.wr.rdma.remote_addr = address;
      wr.wr.rdma.rkey = peer.mr()->rkey;
    }
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(node.connected[0], &wr, &bad), 0);
  }

  void one_sided(Node& node, SimNode& self) {
    sim::Random random(static_cast<std::uint64_t>(node.number));
    for (int i = 0; i < 16; ++i) post_one_sided(node, random);
    while (!stop_) {
      ibv_wc wc{};
      if (ibv_poll_cq(node.connected[0]->send_cq, 1, &wc) == 0) {
        self.idle();
        continue;
      }
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      node.logs[0].push_back(static_cast<std::uint64_t>(self.now().count()));
      if (wc.qp_num == node.connected[0]->qp_num) post_one_sided(node, random);
    }
  }

  void datagrams(Node& node, SimNode& self) {
    const std::uint32_t peer = after(node.number, 2).datagram->qp_num;
    for (int sent = 0; !stop_;) {  // a full queue refuses
      const unsigned flags = sent % 32 == 0 ? kSignaled : 0;
      if (node.verbs.post(node.datagram, {.length = 1024, .flags = flags}, node.ah, peer) == 0) ++sent;
      ibv_wc wc{};
      while (ibv_poll_cq(node.datagram_cq, 1, &wc) == 1) {
        node.logs[1].push_back(static_cast<std::uint64_t>(self.now().count()));
        node.logs[1].push_back(wc.wr_id);
        EXPECT_EQ(node.verbs.post_recv(node.datagram, kIn + wc.wr_id * 1064, 1064, wc.wr_id), 0);
      }
      self.compute(Nanos(400));
    }
  }

  QpOptions options_;
  SimCluster cluster_;
  std::uint64_t network_ = 0;
  std::deque<Node> nodes_;
  bool stop_ = false;
};

class AnyPartition : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, AnyPartition, testing::Bool(),
                         [](const auto& chance) { return chance.param ? "with_chance" : "without_chance"; });

void expect_the_same(const Profile& profile, const std::vector<std::uint64_t>& by_one) {
  for (const auto& partitions : std::vector<std::vector<std::size_t>>{
           {0, 0, 0, 1, 1, 1}, {0, 1, 0, 1, 0, 1}, {0, 1, 1, 1, 2, 2}, {0, 1, 2, 3, 4, 5}}) {
    for (const std::size_t threads : {1, 2, 3}) {
      EXPECT_EQ(Ring(profile, {partitions, threads}).run(), by_one) << threads << " threads";
    }
  }
}

TEST_P(AnyPartition, GivesTheSameRun) {
  Ring one(crowded(GetParam()), {});
  const std::vector<std::uint64_t> by_one = one.run();
  EXPECT_GT(one.completions(), 1000u);
  EXPECT_GT(one.credit_waits(), 100u);
  expect_the_same(crowded(GetParam()), by_one);
}

TEST(AnyPartitionOfEthernet, GivesTheSameRun) {
  for (const FlowControl flow_control : {FlowControl::tail_drop, FlowControl::pfc}) {
    Ring one(ethernet(flow_control), {});
    const std::vector<std::uint64_t> by_one = one.run();
    EXPECT_GT(one.completions(), 500u);
    EXPECT_GT(one.network(), 20u);
    expect_the_same(ethernet(flow_control), by_one);
  }
}

}  // namespace
}  // namespace verbscope::test
