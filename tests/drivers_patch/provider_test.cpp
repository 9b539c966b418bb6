// Providers with all entries and with missing ones; objects that were not attached; contexts that are closed with
// live objects; the program's own wrappers.
#include <gtest/gtest.h>

#include <array>

#include "tests/drivers_patch/fake_device.hpp"
#include "tests/drivers_patch/traced_rig.hpp"

namespace verbscope::driver {
namespace {

std::uint32_t latest_context() {
  return summarize_process().contexts.back().number;
}

void post(ibv_qp& qp, int times = 1) {
  Send send(IBV_WR_SEND, 64, IBV_SEND_SIGNALED);
  ibv_send_wr* bad = nullptr;
  for (int i = 0; i < times; ++i) ASSERT_EQ(ibv_post_send(&qp, &send.wr, &bad), 0);
}

TEST(DriverProvider, LeavesMissingEntriesMissing) {
  using Call = void (*)(ibv_context_ops&);
  const std::array<Call, 5> skip = {
      [](ibv_context_ops& ops) { ops.post_send = nullptr; }, [](ibv_context_ops& ops) { ops.post_recv = nullptr; },
      [](ibv_context_ops& ops) { ops.post_srq_recv = nullptr; }, [](ibv_context_ops& ops) { ops.poll_cq = nullptr; },
      [](ibv_context_ops& ops) { ops.req_notify_cq = nullptr; }};
  for (const Call call : skip) {
    FakeDevice device;
    call(device.context.ops);
    const ibv_context_ops before = device.context.ops;
    counted_context(device.context);
    const ibv_context_ops& ops = device.context.ops;
    EXPECT_EQ(ops.post_send == nullptr, before.post_send == nullptr);
    EXPECT_EQ(ops.post_recv == nullptr, before.post_recv == nullptr);
    EXPECT_EQ(ops.post_srq_recv == nullptr, before.post_srq_recv == nullptr);
    EXPECT_EQ(ops.poll_cq == nullptr, before.poll_cq == nullptr);
    EXPECT_EQ(ops.req_notify_cq == nullptr, before.req_notify_cq == nullptr);
    detach_context(device.context);
    EXPECT_EQ(std::memcmp(&ops, &before, sizeof before), 0);
  }
}

TEST(DriverProvider, CountsObjectsThatWereNotAttached) {
  FakeDevice device;
  counted_context(device.context);
  ibv_qp qp = device.qp(77, IBV_QPT_UD);
  ibv_cq cq = device.cq();
  post(qp, 3);
  device.complete(77, IBV_WC_SEND);
  std::array<ibv_wc, 4> wc;
  EXPECT_EQ(ibv_poll_cq(&cq, 4, wc.data()), 1);
  const QpSummary seen = only_qp(summarize_process(), latest_context());
  EXPECT_EQ(seen.qp_num, 77u);
  EXPECT_TRUE(seen.facts.adopted);
  EXPECT_EQ(seen.facts.type, IBV_QPT_UD);
  EXPECT_EQ(seen.sums.requests(), 3u);
  EXPECT_EQ(seen.sums.send_completions, 1u);
  detach_context(device.context);
}

TEST(DriverProvider, CountsAcceptedRecvsOfSharedQueues) {
  FakeDevice device;
  counted_context(device.context);
  ibv_srq srq{};
  srq.context = &device.context;
  attach_srq(srq, 1);
  std::array<ibv_recv_wr, 2> list{};
  list[0].next = &list[1];
  ibv_recv_wr* bad = nullptr;
  const Recvs before = summarize_process().whole.recvs;
  EXPECT_EQ(ibv_post_srq_recv(&srq, list.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &list[1]);
  EXPECT_EQ(ibv_post_srq_recv(&srq, &list[1], &bad), 0);
  const Recvs after = summarize_process().whole.recvs;
  EXPECT_EQ(after.recvs - before.recvs, 2u);
  EXPECT_EQ(after.failed_posts - before.failed_posts, 1u);
  detach_srq(srq);
  detach_context(device.context);
}

TEST(DriverProvider, CountsExtendedQueuesLikeOthers) {
  FakeDevice device;
  counted_context(device.context);
  ibv_qp qp = device.qp(5);
  attach_qp(qp, nullptr, {}, false, 1024);
  ibv_cq_ex cq = device.extended_cq();
  attach_cq_ex(cq);
  const Sums before = summarize_process().whole;
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(&cq, &attr), ENOENT);
  device.complete(5, IBV_WC_SEND);
  device.complete(5, IBV_WC_RECV, IBV_WC_SUCCESS, 100);
  device.complete(5, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(ibv_start_poll(&cq, &attr), 0);
  EXPECT_EQ(ibv_next_poll(&cq), 0);
  EXPECT_EQ(ibv_next_poll(&cq), 0);
  EXPECT_EQ(cq.status, IBV_WC_RETRY_EXC_ERR);
  ibv_end_poll(&cq);
  const Sums after = summarize_process().whole;
  EXPECT_EQ(after.polls - before.polls, 1u);
  EXPECT_EQ(after.empty_polls - before.empty_polls, 1u);
  EXPECT_EQ(after.by_batch[2] - before.by_batch[2], 1u);
  const Sums of_qp = only_qp(summarize_process(), latest_context()).sums;
  EXPECT_EQ(of_qp.send_completions, 1u);
  EXPECT_EQ(of_qp.received.completions, 1u);
  EXPECT_EQ(of_qp.received.payload_bytes, 100u);
  EXPECT_EQ(of_qp.by_status[IBV_WC_RETRY_EXC_ERR], 1u);
  detach_context(device.context);
}

TEST(DriverProvider, CountsQueuesWithoutQpNumbers) {
  FakeDevice device;
  counted_context(device.context);
  ibv_cq_ex cq = device.extended_cq();
  cq.read_qp_num = nullptr;
  cq.read_byte_len = nullptr;
  attach_cq_ex(cq);
  device.complete(5, IBV_WC_RECV, IBV_WC_SUCCESS, 100);
  const Sums before = summarize_process().whole;
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(&cq, &attr), 0);
  ibv_end_poll(&cq);
  const Sums after = summarize_process().whole;
  EXPECT_EQ(after.received.completions - before.received.completions, 1u);
  EXPECT_EQ(after.received.payload_bytes, before.received.payload_bytes);
  detach_context(device.context);
}

TEST(DriverProvider, DetachesAContextWithLiveObjects) {
  FakeDevice device;
  ibv_qp qp = device.qp(9);
  ibv_cq cq = device.cq();
  counted_context(device.context);
  attach_qp(qp, nullptr, {}, false, 1024);
  attach_cq(cq);
  post(qp, 2);
  const std::uint32_t first = latest_context();
  detach_context(device.context);
  post(qp);  // to the device alone
  // Another context, and another QP, at the same addresses.
  counted_context(device.context);
  qp.qp_num = 10;
  attach_qp(qp, nullptr, {}, false, 1024);
  post(qp, 5);
  EXPECT_EQ(only_qp(summarize_process(), first).sums.requests(), 2u);
  EXPECT_EQ(only_qp(summarize_process(), latest_context()).sums.requests(), 5u);
  detach_context(device.context);
}

TEST(DriverProvider, KeepsCountingAQpThatCouldNotBeDestroyed) {
  FakeDevice device;
  counted_context(device.context);
  ibv_qp qp = device.qp(11);
  attach_qp(qp, nullptr, {}, false, 1024);
  post(qp, 2);
  restore_qp(detach_qp(qp));
  post(qp, 3);
  const QpSummary seen = only_qp(summarize_process(), latest_context());
  EXPECT_EQ(seen.sums.requests(), 5u);
  EXPECT_TRUE(seen.alive);
  EXPECT_EQ(seen.threads.size(), 1u);
  detach_context(device.context);
}

int calls_of_own = 0;
decltype(ibv_context_ops::post_send) behind_own = nullptr;

TEST(DriverProvider, KeepsTheProgramsOwnWrapper) {
  FakeDevice device;
  counted_context(device.context);
  ibv_qp qp = device.qp(12);
  attach_qp(qp, nullptr, {}, false, 1024);
  behind_own = device.context.ops.post_send;
  const auto own = +[](ibv_qp* of, ibv_send_wr* wr, ibv_send_wr** bad) {
    ++calls_of_own;
    return behind_own(of, wr, bad);
  };
  device.context.ops.post_send = own;
  post(qp, 4);
  EXPECT_EQ(calls_of_own, 4);
  EXPECT_EQ(only_qp(summarize_process(), latest_context()).sums.requests(), 4u);
  detach_context(device.context);
  EXPECT_EQ(device.context.ops.post_send, own);
}

TEST(DriverProvider, TenThousandQueuePairsTakeLessThan64Megabytes) {
  FakeDevice device;
  counted_context(device.context);
  const std::uint64_t before = process.arena.header().used;
  std::deque<ibv_qp> qps;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    qps.push_back(device.qp(1000 + i));
    attach_qp(qps.back(), nullptr, {}, false, 1024);
    post(qps.back());
  }
  EXPECT_LT(process.arena.header().used - before, std::uint64_t{64} << 20);
  EXPECT_EQ(process.arena.header().without_room, 0u);
  const std::uint32_t context = latest_context();
  std::uint64_t requests = 0;
  for (const QpSummary& qp : summarize_process().qps) requests += qp.context == context ? qp.sums.requests() : 0;
  EXPECT_EQ(requests, 10000u);
  detach_context(device.context);
}

}  // namespace
}  // namespace verbscope::driver
