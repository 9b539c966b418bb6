// The same seed gives the same run: equal counts, and equal times to the picosecond. Memory does not grow with time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

// With the profile's randomness, and a switch that loses packets.
Profile random_profile(double loss) {
  Profile profile = load_profile("cib");
  profile.fabric.loss_probability = loss;
  return profile;
}

// A load until `end`: batches of signaled SENDs through one QP per transport. Receivers post RECVs again.
class Load {
 public:
  Load(const Profile& profile, std::uint64_t seed) : cluster_(profile, 2, seed), a_(cluster_, 0), b_(cluster_, 1) {
    ah_ = a_.make_ah(1);
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
      const QpOptions options{.timeout = 4};
      from_.push_back(a_.make_qp(type, options));
      to_.push_back(b_.make_qp(type, options));
      EXPECT_EQ(bring_up(a_, from_.back(), options, 1, to_.back()->qp_num), 0);
      EXPECT_EQ(bring_up(b_, to_.back(), options, 0, from_.back()->qp_num), 0);
      EXPECT_EQ(b_.post_recvs(to_.back(), kIn, 300, 64), 0);
    }
    cluster_.add_thread(0, 0, [this](SimNode& node) { send(node); });
    cluster_.add_thread(1, 0, [this](SimNode& node) { receive(node); });
  }

  // Runs until `end`, and records the simulation's memory at `look`.
  void run(Picos look, Picos end) {
    cluster_.at(look, [this] {
      events_then_ = cluster_.event_places();
      packets_then_ = cluster_.packets_allocated();
    });
    cluster_.at(end, [this] { stop_ = true; });
    cluster_.run();
  }

  std::vector<std::uint64_t> everything() const {
    std::vector<std::uint64_t> all{static_cast<std::uint64_t>(cluster_.now().count()), cluster_.events_run(), sent_,
                                   received_};
    for (int node = 0; node < 2; ++node) {
      for (const std::uint64_t value : values(cluster_.pcie_counts(node))) all.push_back(value);
      for (const std::uint64_t value : values(cluster_.nic_counts(node))) all.push_back(value);
    }
    return all;
  }

  SimCluster cluster_;
  std::size_t events_then_ = 0;
  std::size_t packets_then_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;

 private:
  void send(SimNode& node) {
    std::vector<int> room(from_.size(), 48);
    while (!stop_) {
      for (std::size_t i = 0; i < from_.size(); ++i) {
        if (room[i] < 16) continue;
        const unsigned flags = kSignaled | (sent_ % 32 == 0 ? kInline : 0);
        EXPECT_EQ(a_.post_list(from_[i], {.length = 100, .flags = flags}, 16, ah_, to_[i]->qp_num), 0);
        room[i] -= 16;
      }
      ibv_wc wc[16];
      const int count = ibv_poll_cq(a_.send_cq(), 16, wc);
      if (count == 0 && !stop_) node.idle();
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(wc[i].status, IBV_WC_SUCCESS);
        for (std::size_t q = 0; q < from_.size(); ++q) room[q] += wc[i].qp_num == from_[q]->qp_num ? 1 : 0;
        ++sent_;
      }
    }
  }
  void receive(SimNode& node) {
    while (!stop_) {
      ibv_wc wc[16];
      const int count = ibv_poll_cq(b_.recv_cq(), 16, wc);
      if (count == 0 && !stop_) node.idle();
      for (int i = 0; i < count; ++i) {
        for (ibv_qp* qp : to_) {
          if (qp->qp_num == wc[i].qp_num) b_.post_recv(qp, kIn + wc[i].wr_id * 300, 300, wc[i].wr_id);
        }
        ++received_;
      }
    }
  }

  TestNode a_;
  TestNode b_;
  ibv_ah* ah_;
  std::vector<ibv_qp*> from_;
  std::vector<ibv_qp*> to_;
  bool stop_ = false;
};

std::vector<std::uint64_t> run_of(std::uint64_t seed, double loss) {
  Load load(random_profile(loss), seed);
  load.run(std::chrono::microseconds(100), std::chrono::microseconds(300));
  EXPECT_GT(load.received_, 500u);
  return load.everything();
}

TEST(Determinism, OneSeedGivesOneRun) {
  for (const double loss : {0.0, 0.02}) EXPECT_EQ(run_of(7, loss), run_of(7, loss));
}

TEST(Determinism, AnotherSeedGivesAnother) {
  for (const double loss : {0.0, 0.02}) EXPECT_NE(run_of(7, loss), run_of(8, loss));
}

TEST(Memory, DoesNotGrowWithTime) {
  Load load(random_profile(0), 3);
  load.run(std::chrono::milliseconds(1), std::chrono::milliseconds(10));
  EXPECT_GT(load.sent_, 50'000u);
  // Both are high-water marks of outstanding work; the array of events doubles when it is full. By chance they may be
  // larger after ten times the time, but not ten times as large.
  EXPECT_LE(load.cluster_.event_places(), 2 * load.events_then_);
  EXPECT_LE(load.cluster_.packets_allocated(), load.packets_then_ + load.packets_then_ / 20);
}

}  // namespace
}  // namespace verbscope::test
