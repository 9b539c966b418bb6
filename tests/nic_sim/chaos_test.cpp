// Random operations on QPs of an adapter with scarce resources: every RECV and every signaled SEND completes once and
// in order, and afterwards every QP works again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "nic_sim/profile/random.hpp"
#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

constexpr std::uint32_t kLargest = 3000;

Profile scarce() {
  Profile profile = load_profile("cib");
  profile.host.cores = 100'000;
  profile.wire.pcie.mrrs = Bytes(256);
  profile.link.read_tags = 4;
  profile.link.posted_credits = Bytes(512);
  profile.nic.requester_units = profile.nic.responder_units = 2;
  profile.nic.wqe_cache = Bytes(512);
  profile.nic.wqe_fetch_ahead = Bytes(256);
  profile.nic.qp_context_cache = Bytes(3 * 375);
  profile.nic.input_buffer = Bytes(4096 + 256);
  profile.fabric.loss_probability = 0.01;
  return profile;
}

// One end of a connection, and its requests that must still complete.
struct End {
  struct Request {
    std::uint64_t id;
    bool signaled;
  };
  TestNode* node;
  ibv_qp* qp;
  std::deque<Request> sends;
  std::deque<std::uint64_t> recvs;

  void see_send(const ibv_wc& wc) {
    while (!sends.empty() && sends.front().id != wc.wr_id) {
      EXPECT_FALSE(sends.front().signaled) << "request " << sends.front().id << " never completed";
      sends.pop_front();
    }
    ASSERT_FALSE(sends.empty()) << "request " << wc.wr_id << " completed twice, or was never posted";
    EXPECT_TRUE(sends.front().signaled || wc.status != IBV_WC_SUCCESS);
    sends.pop_front();
  }
  void see_recv(const ibv_wc& wc) {
    ASSERT_FALSE(recvs.empty());
    EXPECT_EQ(recvs.front(), wc.wr_id);
    recvs.pop_front();
  }
};

class Chaos : public testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::size_t kConnections = 6;

  Chaos() : random_(GetParam()), nodes_(scarce(), GetParam()) {
    fill(nodes_.a.memory(), kLargest, 1);
    fill(nodes_.b.memory(), kLargest, 1);
    ah_[0] = nodes_.a.make_ah(1);
    ah_[1] = nodes_.b.make_ah(0);
    for (std::size_t i = 0; i < kConnections; ++i) {
      make(i);
      connect(i);
    }
  }

  ibv_qp_type type_of(std::size_t connection) const {
    return std::array{IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}[connection % 3];
  }

  void make(std::size_t i) {
    for (std::size_t side = 0; side < 2; ++side) {
      TestNode& node = side == 0 ? nodes_.a : nodes_.b;
      ends_[i][side] = End{&node, node.make_qp(type_of(i), options_), {}, {}};
    }
  }

  void connect(std::size_t i) {
    options_.psn += 0x1000;
    for (std::size_t side = 0; side < 2; ++side) {
      End& end = ends_[i][side];
      const int to = side == 0 ? 1 : 0;
      ASSERT_EQ(bring_up(*end.node, end.qp, options_, to, ends_[i][1 - side].qp->qp_num), 0);
    }
  }

  void change_state(End& end, ibv_qp_state to) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    ASSERT_EQ(end.node->provider().modify_qp(end.qp, &attr, IBV_QP_STATE), 0);
    if (to == IBV_QPS_RESET) {
      end.sends.clear();
      end.recvs.clear();
    }
  }

  void reconnect(std::size_t i) {
    for (End& end : ends_[i]) change_state(end, IBV_QPS_RESET);
    connect(i);
  }

  void send(std::size_t i, std::size_t side) {
    End& end = ends_[i][side];
    const auto length = static_cast<std::uint32_t>(random_.below(random_.below(3) == 0 ? kLargest : 200));
    unsigned flags = random_.below(3) == 0 ? kSignaled : 0;
    // The last place of a queue must not be used by a request that never frees it.
    if (end.sends.size() % 8 == 7) flags = kSignaled;
    if (length <= 256 && random_.below(2) == 0) flags |= kInline;
    const int count = random_.below(3) == 0 ? 3 : 1;
    const Send what{.length = length, .id = next_id_, .flags = flags};
    const std::uint32_t peer = ends_[i][1 - side].qp->qp_num;
    if (end.sends.size() + 3 > options_.cap.max_send_wr) return;
    const int error = end.node->post_list(end.qp, what, count, ah_[side], peer);
    if (error != 0) return;  // the queue is full of requests whose completions were not polled
    for (int n = 0; n < count; ++n) {
      end.sends.push_back({next_id_++, (flags & kSignaled) != 0});
    }
  }

  void post_recv(std::size_t i, std::size_t side) {
    End& end = ends_[i][side];
    if (end.recvs.size() == options_.cap.max_recv_wr) return;
    const std::uint32_t room = random_.below(100) == 0 ? 50 : 40 + kLargest;
    if (end.node->post_recv(end.qp, kIn + i * 4096, room, next_id_) == 0) end.recvs.push_back(next_id_++);
  }

  End* find(std::size_t side, std::uint32_t number) {
    for (auto& connection : ends_) {
      if (connection[side].qp->qp_num == number) return &connection[side];
    }
    return nullptr;
  }

  void poll() {
    for (std::size_t side = 0; side < 2; ++side) {
      TestNode& node = side == 0 ? nodes_.a : nodes_.b;
      for (const ibv_wc& wc : node.poll_sends()) {
        End* end = find(side, wc.qp_num);
        ASSERT_NE(end, nullptr);
        end->see_send(wc);
      }
      for (const ibv_wc& wc : node.poll_recvs()) {
        End* end = find(side, wc.qp_num);
        ASSERT_NE(end, nullptr);
        end->see_recv(wc);
        if (wc.status == IBV_WC_SUCCESS) ++received_;
      }
    }
  }

  void something() {
    const std::size_t i = random_.below(kConnections);
    const std::size_t side = random_.below(2);
    const std::uint64_t dice = random_.below(1000);
    if (dice < 400) {
      send(i, side);
    } else if (dice < 800) {
      post_recv(i, side);
    } else if (dice < 900) {
      nodes_.pass(Picos(static_cast<std::int64_t>(random_.below(3'000'000))));
    } else if (dice < 980) {
      poll();
    } else if (dice < 985) {
      change_state(ends_[i][side], IBV_QPS_ERR);
    } else if (dice < 995) {
      reconnect(i);
    } else {
      for (End& end : ends_[i]) end.node->destroy(end.qp);
      make(i);
      connect(i);
    }
  }

  sim::Random random_;
  TwoNodes nodes_;
  QpOptions options_{
      .cap = {.max_send_wr = 32, .max_recv_wr = 20, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 256},
      .timeout = 1,
      .rnr_retries = 3,
      .mtu = IBV_MTU_1024};
  std::array<std::array<End, 2>, kConnections> ends_;
  std::array<ibv_ah*, 2> ah_{};
  std::uint64_t next_id_ = 1;
  std::uint64_t received_ = 0;
};

TEST_P(Chaos, EachRequestCompletesOnceAndEachQpWorksAfterwards) {
  for (int step = 0; step < 6000 && !HasFailure(); ++step) something();
  EXPECT_GT(received_, 150u);
  nodes_.pass(std::chrono::milliseconds(1));
  poll();
  ASSERT_FALSE(HasFailure());
  // All QPs in ERR: every request must complete.
  for (auto& connection : ends_) {
    for (End& end : connection) change_state(end, IBV_QPS_ERR);
  }
  nodes_.pass(std::chrono::microseconds(100));
  poll();
  for (auto& connection : ends_) {
    for (End& end : connection) {
      EXPECT_TRUE(end.recvs.empty());
      for (const End::Request& request : end.sends) EXPECT_FALSE(request.signaled) << request.id;
    }
  }
  // All QPs work again. A switch that loses 1 % of the packets delivers most of twenty messages.
  for (std::size_t i = 0; i < kConnections; ++i) {
    reconnect(i);
    TestNode& b = nodes_.b;
    ASSERT_EQ(b.post_recvs(ends_[i][1].qp, kIn, 2000, 20), 0);
    for (int n = 0; n < 20; ++n) {
      ASSERT_EQ(nodes_.a.post(ends_[i][0].qp, {.length = 1000}, ah_[0], ends_[i][1].qp->qp_num), 0);
    }
    nodes_.pass(std::chrono::milliseconds(1));
    const auto received = b.poll_recvs();
    EXPECT_GE(received.size(), type_of(i) == IBV_QPT_RC ? 20u : 15u) << "connection " << i;
    for (const ibv_wc& wc : received) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_TRUE(has_pattern(b.memory(kIn + wc.wr_id * 2000 + grh_room(type_of(i))), 1000, 1));
    }
    EXPECT_EQ(nodes_.a.poll_sends().size(), 20u) << "connection " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, Chaos, testing::Range(std::uint64_t{100}, std::uint64_t{120}));

}  // namespace
}  // namespace verbscope::test
