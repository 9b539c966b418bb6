// Asynchronous events, limits of shared receive queues, and file descriptors that tell of events. InfiniBand
// Architecture Specification 1.3, volume 1, section 11.6.3; ibv_get_async_event(3), ibv_modify_srq(3),
// ibv_get_cq_event(3).
#include <fcntl.h>
#include <poll.h>

#include <optional>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

bool is_readable(int fd) {
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
}

class Async : public Rig {
 protected:
  // The next event of b; a failure if none comes. It is acknowledged.
  ibv_async_event next(const char* what) {
    await_until([this] { return is_readable(b.context()->async_fd); }, what);
    ibv_async_event event{};
    if (HasFailure() || b.verbs().get_async_event(b.context(), &event) != 0) {
      ADD_FAILURE() << "no event: " << what;
      return event;
    }
    b.verbs().ack_async_event(&event);
    return event;
  }
  void expect_none() {
    fabric().pass(kShort);
    EXPECT_FALSE(is_readable(b.context()->async_fd));
  }
  // get_async_event() no longer waits.
  void set_nonblocking() {
    ASSERT_EQ(fcntl(b.context()->async_fd, F_SETFL, fcntl(b.context()->async_fd, F_GETFL) | O_NONBLOCK), 0);
  }
  int limit(ibv_srq* srq, std::uint32_t recvs) {
    ibv_srq_attr attr{};
    attr.srq_limit = recvs;
    return b.verbs().modify_srq(srq, &attr, IBV_SRQ_LIMIT);
  }
  int resize(ibv_srq* srq, std::uint32_t recvs) {
    ibv_srq_attr attr{};
    attr.max_wr = recvs;
    return b.verbs().modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
  }
  ibv_srq_attr attributes_of(ibv_srq* srq) {
    ibv_srq_attr attr{};
    EXPECT_EQ(b.verbs().query_srq(srq, &attr), 0);
    return attr;
  }
  Pair connect_to(ibv_srq* srq) {
    QpAsk ask;
    ask.srq = srq;
    return connect(IBV_QPT_RC, {}, {}, ask);
  }
  void deliver(const Pair& pair) {
    send(pair.a, {.sges = {a.sge(0, 8)}});
    await_success(a.send_cq(), "a SEND");
    await_success(b.recv_cq(), "its RECV");
  }
};

TEST_F(Async, ThereIsNoEventAtFirst) {
  set_nonblocking();
  EXPECT_FALSE(is_readable(b.context()->async_fd));
  ibv_async_event event{};
  errno = 0;
  EXPECT_EQ(b.verbs().get_async_event(b.context(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

class SrqLimit : public Async {
 protected:
  ibv_srq* srq = b.make_srq(8);
  Pair pair = connect_to(srq);

  void post(int recvs) {
    for (int i = 0; i < recvs; ++i) srq_recv(srq, {b.sge(0, 64)});
  }
};

// ibv_modify_srq(3): the event comes once the number of requests drops below the limit.
TEST_F(SrqLimit, IsToldWhenFewerAreLeft) {
  post(4);
  ASSERT_EQ(limit(srq, 3), 0);
  deliver(pair);
  expect_none();
  deliver(pair);
  const ibv_async_event event = next("the limit of the SRQ");
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq);
}

TEST_F(SrqLimit, IsToldOnceAndThenNotSet) {
  post(4);
  ASSERT_EQ(limit(srq, 4), 0);
  EXPECT_EQ(attributes_of(srq).srq_limit, 4u);
  deliver(pair);
  next("the limit of the SRQ");
  EXPECT_EQ(attributes_of(srq).srq_limit, 0u);
  deliver(pair);
  expect_none();
}

TEST_F(SrqLimit, CanBeSetAgain) {
  post(4);
  for (const std::uint32_t recvs : {4u, 3u}) {
    ASSERT_EQ(limit(srq, recvs), 0);
    deliver(pair);
    EXPECT_EQ(next("the limit of the SRQ").event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  }
}

TEST_F(SrqLimit, OfZeroTellsNothing) {
  post(2);
  ASSERT_EQ(limit(srq, 2), 0);
  ASSERT_EQ(limit(srq, 0), 0);
  deliver(pair);
  deliver(pair);
  expect_none();
}

TEST_F(SrqLimit, CountsTheQpsTogether) {
  const Pair second = connect_to(srq);
  post(3);
  ASSERT_EQ(limit(srq, 2), 0);
  deliver(pair);
  expect_none();
  deliver(second);
  EXPECT_EQ(next("the limit of the SRQ").element.srq, srq);
}

TEST_F(SrqLimit, OverTheDepthIsRefused) {
  EXPECT_EQ(limit(srq, attributes_of(srq).max_wr + 100'000), EINVAL);
  EXPECT_EQ(attributes_of(srq).srq_limit, 0u);
}

TEST_F(SrqLimit, WakesAThreadThatWaits) {
  post(1);
  ASSERT_EQ(limit(srq, 1), 0);
  send(pair.a, {.sges = {a.sge(0, 8)}});
  ibv_async_event event{};
  ASSERT_EQ(b.verbs().get_async_event(b.context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  b.verbs().ack_async_event(&event);
}

TEST_F(SrqLimit, IsNotToldOfAQueueThatIsGone) {
  post(1);
  ASSERT_EQ(limit(srq, 1), 0);
  deliver(pair);
  await_until([this] { return is_readable(b.context()->async_fd); }, "the limit of the SRQ");
  EXPECT_EQ(b.destroy(pair.b), 0);
  EXPECT_EQ(b.destroy(srq), 0);
  EXPECT_FALSE(is_readable(b.context()->async_fd));
}

class SrqResize : public Async {};

TEST_F(SrqResize, MakesRoomForMore) {
  VERBSCOPE_NEEDS((a.device().attributes().device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0, "resizing of SRQs");
  ibv_srq* srq = b.make_srq(4);
  const Pair pair = connect_to(srq);
  for (std::uint64_t id = 0; id < 4; ++id) srq_recv(srq, {b.sge(id * 64, 64)}, id);
  ASSERT_EQ(resize(srq, 200), 0);
  EXPECT_GE(attributes_of(srq).max_wr, 200u);
  for (std::uint64_t id = 4; id < 200; ++id) srq_recv(srq, {b.sge(id * 64, 64)}, id);
  for (std::uint64_t id = 0; id < 200; ++id) {
    a.word(0) = id + 1000;
    send(pair.a, {.sges = {a.sge(0, 8)}});
    EXPECT_EQ(await_success(b.recv_cq(), "a message after the resize").wr_id, id);
    await_success(a.send_cq(), "its SEND");
    EXPECT_EQ(b.word(id * 64), id + 1000);
  }
}

TEST_F(SrqResize, BelowWhatIsPostedIsRefused) {
  VERBSCOPE_NEEDS((a.device().attributes().device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0, "resizing of SRQs");
  ibv_srq* srq = b.make_srq(64);
  for (int i = 0; i < 40; ++i) srq_recv(srq, {b.sge(0, 64)});
  EXPECT_THAT(resize(srq, 8), testing::AnyOf(EINVAL, ENOMEM));
  EXPECT_GE(attributes_of(srq).max_wr, 64u);
}

TEST_F(SrqResize, OverTheDevicesLimitIsRefused) {
  VERBSCOPE_NEEDS((a.device().attributes().device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0, "resizing of SRQs");
  ibv_srq* srq = b.make_srq(4);
  EXPECT_EQ(resize(srq, static_cast<std::uint32_t>(b.device().attributes().max_srq_wr) + 1), EINVAL);
}

class QpEvents : public Async {
 protected:
  bool told = !deviates("no-events-of-failed-qps");
};

// Section 11.6.3: the QP takes no more requests from its shared queue.
TEST_F(QpEvents, TellTheLastRequestWhenAQpFails) {
  const Pair pair = connect_to(b.make_srq(8));
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
  if (!told) return expect_none();
  const ibv_async_event event = next("the last request of a QP with an SRQ");
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, pair.b);
  expect_none();
}

TEST_F(QpEvents, TellNoLastRequestWithoutAnSrq) {
  const Pair pair = connect(IBV_QPT_RC);
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
  expect_none();
}

// Section 11.6.3, Local Access Violation Work Queue Error: no work request of the responder tells it.
TEST_F(QpEvents, TellAnAccessThatWasRefused) {
  const Pair pair = connect(IBV_QPT_RC);
  Request request = write_to(a.sge(0, 8), b, 0);
  request.rkey += 1;
  send(pair.a, request);
  await_status(a.send_cq(), IBV_WC_REM_ACCESS_ERR, "a WRITE with a wrong key");
  if (!told) return expect_none();
  const ibv_async_event event = next("a refused access");
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, pair.b);
  EXPECT_EQ(state_of(b, pair.b), IBV_QPS_ERR);
}

// The same section, Invalid Request Local Work Queue Error.
TEST_F(QpEvents, TellARequestThatWasInvalid) {
  const Pair pair = connect(IBV_QPT_RC, {.access = IBV_ACCESS_REMOTE_WRITE});
  send(pair.a, read_of(a.sge(0, 8), b, 0));
  await_one(a.send_cq(), "a READ that the QP does not allow");
  if (!told) return expect_none();
  const ibv_async_event event = next("an invalid request");
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(event.element.qp, pair.b);
}

TEST_F(QpEvents, ComeInTheirOrder) {
  if (!told) GTEST_SKIP() << "no-events-of-failed-qps";
  const Pair first = connect(IBV_QPT_RC);
  const Pair second = connect_to(b.make_srq(8));
  for (const Pair& pair : {first, second}) {
    Request request = write_to(a.sge(0, 8), b, 0);
    request.rkey += 1;
    send(pair.a, request);
    await_status(a.send_cq(), IBV_WC_REM_ACCESS_ERR, "a WRITE with a wrong key");
  }
  EXPECT_EQ(next("the first QP's").element.qp, first.b);
  const ibv_async_event error = next("the second QP's");
  EXPECT_EQ(error.element.qp, second.b);
  EXPECT_EQ(error.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(next("the second QP's last request").event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
}

TEST_F(QpEvents, AreNotToldOfAQpThatIsGone) {
  const Pair pair = connect_to(b.make_srq(8));
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
  fabric().pass(kShort);
  EXPECT_EQ(b.destroy(pair.b), 0);
  expect_none();
}

// Sections 10.2.8.1 and 11.6.3: a CQ that overruns is in error, and the QPs that complete to it fail.
TEST_F(QpEvents, TellACqThatOverruns) {
  QpAsk ask;
  ask.recv_cq = b.make_cq(2);
  const Pair pair = connect(IBV_QPT_RC, {}, {}, ask);
  const int room = ask.recv_cq->cqe;
  for (int i = 0; i <= room; ++i) {
    recv(pair.b, {b.sge(0, 64)});
    send(pair.a, {.sges = {a.sge(0, 8)}, .flags = 0});
  }
  const ibv_async_event event = next("the overrun of a CQ");
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, ask.recv_cq);
  if (deviates("cq-overrun-loses-completions")) return;
  const ibv_async_event fatal = next("the failure of its QP");
  EXPECT_EQ(fatal.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(fatal.element.qp, pair.b);
  EXPECT_EQ(state_of(b, pair.b), IBV_QPS_ERR);
  expect_none();
}

class ChannelFd : public Rig {
 protected:
  ibv_comp_channel* channel = b.make_channel();
  ibv_cq* cq = b.make_cq(64, channel);
  Pair pair = connect_to(cq);

  Pair connect_to(ibv_cq* queue) {
    QpAsk ask;
    ask.recv_cq = queue;
    return connect(IBV_QPT_RC, {}, {}, ask);
  }
  void deliver(const Pair& by) {
    recv(by.b, {b.sge(0, 64)});
    send(by.a, {.sges = {a.sge(0, 8)}});
    await_success(a.send_cq(), "a SEND");
  }
  void await_readable() {
    await_until([this] { return is_readable(channel->fd); }, "a readable channel");
  }
  void consume(ibv_cq* of) { EXPECT_EQ(fabric().await_event(channel, fabric().patience()), of); }
};

TEST_F(ChannelFd, IsReadableWhenAnEventHasCome) {
  ASSERT_GE(channel->fd, 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  fabric().pass(kShort);
  EXPECT_FALSE(is_readable(channel->fd));
  deliver(pair);
  await_readable();
  consume(cq);
  EXPECT_FALSE(is_readable(channel->fd));
}

TEST_F(ChannelFd, StaysReadableUntilTheLastEventIsConsumed) {
  ibv_cq* other = b.make_cq(64, channel);
  const Pair second = connect_to(other);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(other, 0), 0);
  deliver(pair);
  deliver(second);
  fabric().pass(kShort);
  consume(cq);
  EXPECT_TRUE(is_readable(channel->fd));
  consume(other);
  EXPECT_FALSE(is_readable(channel->fd));
}

TEST_F(ChannelFd, IsNotReadableForACqThatIsGone) {
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  deliver(pair);
  await_readable();
  EXPECT_EQ(b.destroy(pair.b), 0);
  EXPECT_EQ(b.destroy(cq), 0);
  EXPECT_FALSE(is_readable(channel->fd));
}

}  // namespace
}  // namespace verbscope::conformance
