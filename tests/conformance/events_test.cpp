// Completion channels and events. InfiniBand Architecture Specification 1.3, volume 1, section 11.4.2.2 (Request
// Completion Notification); ibv_req_notify_cq(3), ibv_get_cq_event(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Events : public Rig {
 protected:
  ibv_comp_channel* channel = b.make_channel();
  ibv_cq* cq = b.make_cq(64, channel);

  // A pair whose b receives into cq.
  Pair connect_with_events(ibv_qp_type type = IBV_QPT_RC, const LinkOptions& options = {}) {
    QpAsk ask;
    ask.recv_cq = cq;
    return connect(type, options, {}, ask);
  }
  // A pair whose b sends with cq.
  Pair connect_with_send_events() {
    QpAsk ask;
    ask.send_cq = cq;
    return connect(IBV_QPT_RC, {}, {}, ask);
  }
  void deliver(const Pair& pair, unsigned flags = IBV_SEND_SIGNALED) {
    recv(pair.b, {b.sge(0, 64)});
    send(pair.a, {.sges = {a.sge(0, 8)}, .flags = flags | IBV_SEND_SIGNALED});
    await_success(a.send_cq(), "a SEND");
  }
  void expect_event(ibv_cq* of) {
    EXPECT_EQ(fabric().await_event(channel, fabric().patience()), of)
        << "waited for an event: " << std::strerror(errno);
  }
  void expect_no_event() {
    errno = 0;
    EXPECT_EQ(fabric().await_event(channel, kShort), nullptr);
    EXPECT_EQ(errno, ETIMEDOUT);
  }
};

TEST_F(Events, ComeForACompletionWhenAsked) {
  const Pair pair = connect_with_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  deliver(pair);
  expect_event(cq);
  await_success(cq, "the RECV of the event");
}

TEST_F(Events, DoNotComeUnasked) {
  const Pair pair = connect_with_events();
  deliver(pair);
  await_success(cq, "a RECV");
  expect_no_event();
}

// ibv_req_notify_cq(3), NOTES: the request is one shot.
TEST_F(Events, ComeOnceForEachRequest) {
  const Pair pair = connect_with_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  for (int i = 0; i < 3; ++i) deliver(pair);
  EXPECT_EQ(await(cq, 3, "RECVs").size(), 3u);
  expect_event(cq);
  expect_no_event();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  deliver(pair);
  expect_event(cq);
}

// Section 11.4.2.2: an event is for a completion that is added after the request.
TEST_F(Events, DoNotComeForCompletionsThatAreThere) {
  const Pair pair = connect_with_events();
  deliver(pair);
  fabric().pass(kShort);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  expect_no_event();
  await_success(cq, "the RECV that was there");
  deliver(pair);
  expect_event(cq);
}

// The way of ibv_get_cq_event(3): event, request, poll until empty.
TEST_F(Events, AndPollingMissNothing) {
  const Pair pair = connect_with_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  std::size_t received = 0;
  for (int i = 0; i < 10; ++i) {
    deliver(pair);
    expect_event(cq);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    received += poll(cq).size();
  }
  EXPECT_EQ(received, 10u);
}

TEST_F(Events, ForSolicitedOnesPassOverOthers) {
  const Pair pair = connect_with_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
  deliver(pair);
  await_success(cq, "a RECV that is not solicited");
  expect_no_event();
  deliver(pair, IBV_SEND_SOLICITED);
  expect_event(cq);
  await_success(cq, "a solicited RECV");
}

TEST_F(Events, ForAnyIncludeSolicitedOnes) {
  const Pair pair = connect_with_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  deliver(pair, IBV_SEND_SOLICITED);
  expect_event(cq);
}

// ibv_req_notify_cq(3): a completion is solicited too when its status is not success.
TEST_F(Events, ForSolicitedOnesComeForErrors) {
  const Pair pair = connect_with_events();
  recv(pair.b, {b.sge(0, 64)});
  ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
  await_status(cq, IBV_WC_WR_FLUSH_ERR, "a flushed RECV");
  expect_event(cq);
}

TEST_F(Events, ComeForSends) {
  const Pair pair = connect_with_send_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  recv(pair.a, {a.sge(0, 64)});
  send(pair.b, {.sges = {b.sge(0, 8)}});
  expect_event(cq);
  EXPECT_EQ(await_success(cq, "the SEND of the event").opcode, IBV_WC_SEND);
}

TEST_F(Events, ComeForReads) {
  const Pair pair = connect_with_send_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  send(pair.b, read_of(b.sge(0, 8), a, 0));
  expect_event(cq);
  EXPECT_EQ(await_success(cq, "the READ of the event").opcode, IBV_WC_RDMA_READ);
}

TEST_F(Events, ForUnsignaledSendsDoNotCome) {
  const Pair pair = connect_with_send_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  recv(pair.a, {a.sge(0, 64)});
  send(pair.b, {.sges = {b.sge(0, 8)}, .flags = 0});
  await_success(a.recv_cq(), "the message");
  expect_no_event();
}

TEST_F(Events, ComeForSolicitedWritesWithImmediate) {
  const Pair pair = connect_with_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
  recv(pair.b, {});
  Request request = write_to(a.sge(0, 8), b, 4096);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.flags = IBV_SEND_SOLICITED;
  send(pair.a, request);
  expect_event(cq);
  EXPECT_EQ(await_success(cq, "the WRITE of the event").opcode, IBV_WC_RECV_RDMA_WITH_IMM);
}

TEST_F(Events, ComeForDatagrams) {
  const Pair pair = connect_with_events(IBV_QPT_UD);
  ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
  deliver(pair, IBV_SEND_SOLICITED);
  expect_event(cq);
}

TEST_F(Events, OfTwoQueuesOnOneChannelTellWhich) {
  ibv_cq* other = b.make_cq(64, channel);
  QpAsk ask;
  ask.recv_cq = other;
  const Pair second = connect(IBV_QPT_RC, {}, {}, ask);
  const Pair first = connect_with_events();
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(other, 0), 0);
  deliver(second);
  expect_event(other);
  deliver(first);
  expect_event(cq);
  expect_no_event();
}

TEST_F(Events, WakeAWaiterThatCameFirst) {
  const Pair pair = connect_with_events(IBV_QPT_RC, {.rnr_retries = 7, .min_rnr_timer = 20});  // 10 ms
  send(pair.a, {.sges = {a.sge(0, 8)}});  // without RECV yet: it arrives while the waiter sleeps
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  recv(pair.b, {b.sge(0, 64)});
  expect_event(cq);
}

TEST_F(Events, AChannelIsBusyWhileAQueueUsesIt) {
  EXPECT_EQ(b.destroy(channel), EBUSY);
  EXPECT_EQ(b.destroy(cq), 0);
  EXPECT_EQ(b.destroy(channel), 0);
}

TEST_F(Events, AQueueWithoutChannelCanBePolled) {
  const Pair pair = connect(IBV_QPT_RC);
  marker(pair);
}

}  // namespace
}  // namespace verbscope::conformance
