// Several threads post and poll, on QPs of their own and on shared ones, while another reads what was counted.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "drivers_patch/request_counts.hpp"
#include "tests/drivers_patch/fake_device.hpp"
#include "tests/drivers_patch/traced_rig.hpp"

namespace verbscope::driver {
namespace {

constexpr int kThreads = 4;
constexpr int kPosts = 3000;

// A QP and a completion queue of a device whose context is counted.
struct Counted {
  Counted(FakeDevice& device, std::uint32_t number) : qp(device.qp(number)), cq(device.cq()) {
    counted_context(device.context);
    context = summarize_process().contexts.back().number;
    attach_qp(qp, nullptr, {}, false, 1024);
    attach_cq(cq);
  }
  QpSummary seen() const { return only_qp(summarize_process(), context); }

  std::uint32_t context = 0;
  ibv_qp qp;
  ibv_cq cq;
};

void post_and_poll(ibv_qp& qp, ibv_cq& cq, std::uint32_t length) {
  Send send(IBV_WR_RDMA_WRITE, length, IBV_SEND_SIGNALED);
  ibv_send_wr* bad = nullptr;
  std::array<ibv_wc, 4> wc;
  for (int i = 0; i < kPosts; ++i) {
    if (ibv_post_send(&qp, &send.wr, &bad) != 0) std::abort();
    if (ibv_poll_cq(&cq, 4, wc.data()) < 0) std::abort();
  }
}

TEST(DriverThreads, LosesNoCountsOnSharedQps) {
  FakeDevice device;
  device.context.ops.poll_cq = [](ibv_cq*, int, ibv_wc* wc) {
    wc[0] = {};
    wc[0].qp_num = 21;
    wc[0].opcode = IBV_WC_RDMA_WRITE;
    return 1;
  };
  Counted shared(device, 21);
  std::atomic<bool> done{false};
  std::thread reader([&done] {
    std::uint64_t last = 0;
    while (!done) {
      const std::uint64_t requests = summarize_process().whole.requests();
      if (requests < last) std::abort();
      last = requests;
    }
  });
  std::vector<std::thread> posters;
  for (int i = 0; i < kThreads; ++i) {
    posters.emplace_back([&, i] { post_and_poll(shared.qp, shared.cq, 64u << i); });
  }
  for (std::thread& each : posters) each.join();
  done = true;
  reader.join();
  const QpSummary seen = shared.seen();
  EXPECT_EQ(seen.sums.requests(), std::uint64_t{kThreads * kPosts});
  EXPECT_EQ(seen.sums.send_completions, std::uint64_t{kThreads * kPosts});
  EXPECT_EQ(seen.threads.size(), std::size_t{kThreads});
  // From before the second thread started; the first may have posted everything by then.
  EXPECT_LE(seen.sums.samples, std::uint64_t{kPosts / kSampleEvery + 1});
  detach_context(device.context);
}

// The lock of the control path is held during the whole test.
TEST(DriverThreads, PostsAndPollsTakeNoLock) {
  FakeDevice device;
  Counted counted(device, 31);
  {
    const std::lock_guard held(process.control);
    std::thread([&] { post_and_poll(counted.qp, counted.cq, 64); }).join();
  }
  EXPECT_EQ(counted.seen().sums.requests(), std::uint64_t{kPosts});
  detach_context(device.context);
}

TEST(DriverThreads, QpsComeAndGoWhileOthersPost) {
  FakeDevice device;
  counted_context(device.context);
  const std::uint32_t context = summarize_process().contexts.back().number;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&device, i] {
      for (std::uint32_t round = 0; round < 50; ++round) {
        ibv_qp qp = device.qp(100 + i * 1000 + round);
        attach_qp(qp, nullptr, {}, false, 1024);
        Send send(IBV_WR_SEND, 64, IBV_SEND_SIGNALED);
        ibv_send_wr* bad = nullptr;
        for (int n = 0; n < 20; ++n) ibv_post_send(&qp, &send.wr, &bad);
        detach_qp(qp);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  std::uint64_t requests = 0, qps = 0;
  for (const QpSummary& qp : summarize_process().qps) {
    if (qp.context != context) continue;
    ++qps;
    requests += qp.sums.requests();
    EXPECT_EQ(qp.sums.requests(), 20u);
    EXPECT_FALSE(qp.alive);
  }
  EXPECT_EQ(qps, 200u);
  EXPECT_EQ(requests, 4000u);
  detach_context(device.context);
}

}  // namespace
}  // namespace verbscope::driver
