// Two nodes; the second has a completion channel.
#pragma once

#include <cerrno>
#include <functional>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {

inline constexpr Nanos kTimeout = std::chrono::microseconds(100);
inline constexpr Nanos kWakeup = std::chrono::microseconds(3);

// A link with 62.5 ps per byte and headers of 24 bytes. Polls are free, so times are exact to a nanosecond.
inline Profile round_profile() {
  Profile profile = steady_profile();
  profile.wire.pcie.lane_mb_per_s = 1000;
  profile.wire.pcie.request_header = Bytes(24);
  profile.link.tlp_share = profile.link.host_share = 1;
  profile.host.poll_call = profile.host.poll_cqe = Picos(0);
  profile.host.event_wakeup = kWakeup;
  return profile;
}

// RC QPs with posted RECVs. b's QP completes to a queue with a channel.
struct EventRig : TwoNodes {
  explicit EventRig(const Profile& p = round_profile()) : TwoNodes(p) {
    channel = b.provider().create_comp_channel(b.context());
    cq = b.provider().create_cq(b.context(), 256, channel, 0);
    qb = make_qp(cq);
    qa = a.make_qp(IBV_QPT_RC, options);
    EXPECT_EQ(bring_up(a, qa, options, 1, qb->qp_num), 0);
    EXPECT_EQ(bring_up(b, qb, options, 0, qa->qp_num), 0);
    b.post_recvs(qb, 0, 64, 64);
    a.post_recvs(qa, 0, 64, 64);
    pass(kLong);
  }
  ~EventRig() {
    EXPECT_EQ(b.provider().destroy_qp(qb), 0);
    EXPECT_EQ(b.provider().destroy_cq(cq), 0);
    EXPECT_EQ(b.provider().destroy_comp_channel(channel), 0);
  }

  // A QP on b that completes to `to`.
  ibv_qp* make_qp(ibv_cq* to) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = to;
    init.cap = options.cap;
    init.qp_type = IBV_QPT_RC;
    return b.provider().create_qp(b.pd(), &init);
  }
  void send(unsigned flags = 0) { EXPECT_EQ(a.post(qa, {.length = 8, .flags = flags}), 0); }
  void arm(bool solicited_only = false) { EXPECT_EQ(ibv_req_notify_cq(cq, solicited_only ? 1 : 0), 0); }
  int poll() {
    ibv_wc wc{};
    int taken = 0;
    while (ibv_poll_cq(cq, 1, &wc) == 1) ++taken;
    return taken;
  }
  void in_thread(std::function<void(SimNode&)> body, int node = 1) {
    cluster.add_thread(node, next_core_++, std::move(body));
  }
  // Counts events until none arrives for kTimeout.
  int events() {
    int count = 0;
    in_thread([&](SimNode& node) {
      while (ibv_cq* from = node.await_event(channel, kTimeout)) {
        EXPECT_EQ(from, cq);
        ++count;
      }
      EXPECT_EQ(errno, ETIMEDOUT);
    });
    cluster.run();
    return count;
  }

  QpOptions options;
  ibv_comp_channel* channel;
  ibv_cq* cq;
  ibv_qp* qa;
  ibv_qp* qb;

 private:
  int next_core_ = 50'000;
};

}  // namespace verbscope::test
