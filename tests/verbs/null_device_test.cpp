// The control path of the null device: unsupported features, parents with children, and CQs shared by threads.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "tests/verbs/mock_provider.hpp"
#include "tests/verbs/null_rig.hpp"

namespace verbscope {
namespace {

TEST(NullDevice, NamesUnsupportedFeatures) {
  NullRig rig;
  EXPECT_EQ(error_of([&] { CompChannel channel(rig.device); }), "not supported by null0: completion events");
  EXPECT_EQ(error_of([&] { Srq srq(rig.pd, 16, 1); }), "not supported by null0: shared receive queues");
  EXPECT_EQ(error_of([&] { set_inline_recv(rig.device, Transport::rc, Verb::send, 32); }),
            "not supported by null0: inline receive of RC send");
  set_inline_recv(rig.device, Transport::rc, Verb::send, 0);
}

TEST(NullDevice, RefusesToDestroyParentsWithChildren) {
  NullRig rig;
  EXPECT_EQ(rig.provider.close(rig.device.get()), EBUSY);
  EXPECT_EQ(rig.provider.dealloc_pd(rig.pd.get()), EBUSY);
  EXPECT_EQ(rig.provider.destroy_cq(rig.cq.get()), EBUSY);
}

TEST(NullDevice, HasOnePortOnly) {
  NullProvider provider;
  EXPECT_EQ(provider.device_names(), std::vector<std::string>{"null0"});
  EXPECT_EQ(error_of([&] { Device(provider, "null0:2"); }), "device null0 has no port 2: it has port 1 only");
}

TEST(NullDevice, ThreadsCanShareACompletionQueue) {
  constexpr int kThreads = 3;
  constexpr int kSends = 20000;
  const NullSide null(kThreads * kDepth);
  std::deque<Qp> qps;
  for (int i = 0; i < kThreads; ++i) bring_up(qps.emplace_back(null.pd, null.options()));
  std::atomic<int> polled = 0;
  {
    std::vector<std::jthread> threads;
    for (Qp& qp : qps) {
      threads.emplace_back([&qp, &null, &polled] {
        ibv_send_wr wr{};
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED;
        ibv_send_wr* bad = nullptr;
        ibv_wc wc;
        for (int sent = 0; sent < kSends;) {
          if (ibv_post_send(qp.get(), &wr, &bad) == 0) ++sent;
          polled += ibv_poll_cq(null.cq.get(), 1, &wc);
        }
      });
    }
  }
  ibv_wc wc;
  while (ibv_poll_cq(null.cq.get(), 1, &wc) == 1) ++polled;
  EXPECT_EQ(polled, kThreads * kSends);
}

}  // namespace
}  // namespace verbscope
