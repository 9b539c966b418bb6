// The contents of a completion, and the order in which completions come. InfiniBand Architecture Specification 1.3,
// volume 1, sections 10.8.5 (work completion), 10.8.3 (ordering) and 11.4.2.1 (Poll for Completion); ibv_poll_cq(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Completions : public EachTransport {};
VERBSCOPE_EACH_TRANSPORT(Completions);

TEST_P(Completions, OfASendNameTheRequest) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)});
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 0xfedcba9876543210});
  const ibv_wc wc = await_success(a.send_cq(), "a SEND");
  EXPECT_EQ(wc.wr_id, 0xfedcba9876543210u);
  EXPECT_EQ(wc.opcode, IBV_WC_SEND);
  EXPECT_EQ(wc.qp_num, pair.a->qp_num);
}

TEST_P(Completions, OfAReceiveTellItsLength) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)}, 0x8000000000000001);
  send(pair.a, {.sges = {a.sge(0, 13)}});
  const ibv_wc wc = await_success(b.recv_cq(), "a RECV");
  EXPECT_EQ(wc.wr_id, 0x8000000000000001u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 13u + grh());
  EXPECT_EQ(wc.qp_num, pair.b->qp_num);
  EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  if (datagram()) {
    EXPECT_EQ(wc.src_qp, pair.a->qp_num);
  }
}

TEST_P(Completions, OfSendsComeInTheOrderOfPosting) {
  const Pair pair = connect(type());
  std::vector<std::uint64_t> expected;
  for (std::uint64_t id = 0; id < 12; ++id) {
    recv(pair.b, {room(0, 64)});
    send(pair.a, {.sges = {a.sge(0, static_cast<std::uint32_t>(id))}, .id = id});
    expected.push_back(id);
  }
  EXPECT_EQ(ids(await(a.send_cq(), 12, "SENDs")), expected);
}

TEST_P(Completions, OfAListComeInItsOrder) {
  const Pair pair = connect(type());
  std::vector<Request> list;
  for (std::uint64_t id = 0; id < 8; ++id) {
    recv(pair.b, {room(0, 64)}, 100 + id);
    list.push_back({.sges = {a.sge(0, 8)}, .id = id});
  }
  EXPECT_EQ(post(pair.a, list).error, 0);
  EXPECT_THAT(ids(await(a.send_cq(), 8, "SENDs of a list")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// Each message is in the RECV that it consumed: the first posted first.
TEST_P(Completions, OfReceivesComeInTheOrderOfPosting) {
  const Pair pair = connect(type());
  for (std::uint64_t id = 0; id < 8; ++id) recv(pair.b, {room(id * 256, 64)}, id);
  for (unsigned i = 0; i < 8; ++i) {
    fill(a.memory(i * 64), 32, i);
    send(pair.a, {.sges = {a.sge(i * 64, 32)}});
  }
  EXPECT_THAT(ids(await(b.recv_cq(), 8, "RECVs")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  for (unsigned i = 0; i < 8; ++i) EXPECT_TRUE(has_pattern(b.memory(i * 256 + grh()), 32, i)) << "message " << i;
}

TEST_P(Completions, OfUnsignaledSendsAreNone) {
  const Pair pair = connect(type());
  for (std::uint64_t id = 0; id < 4; ++id) {
    recv(pair.b, {room(0, 64)});
    send(pair.a, {.sges = {a.sge(0, 8)}, .id = id, .flags = id == 3 ? unsigned{IBV_SEND_SIGNALED} : 0u});
  }
  EXPECT_THAT(ids(await(a.send_cq(), 1, "the signaled SEND")), ElementsAre(3));
  EXPECT_EQ(await(b.recv_cq(), 4, "all four").size(), 4u);
  EXPECT_THAT(poll(a.send_cq()), IsEmpty());
}

// ibv_create_qp(3), sq_sig_all: each request generates a completion.
TEST_P(Completions, AreForAllWhenTheQpSignalsAll) {
  QpAsk ask;
  ask.signal_all = true;
  const Pair pair = connect(type(), {}, ask);
  for (std::uint64_t id = 0; id < 3; ++id) {
    recv(pair.b, {room(0, 64)});
    send(pair.a, {.sges = {a.sge(0, 8)}, .id = id, .flags = 0});
  }
  EXPECT_THAT(ids(await(a.send_cq(), 3, "SENDs without the flag")), ElementsAre(0, 1, 2));
}

// Section 10.8.2.1 (unsignaled completions): a polled completion tells that all requests before it are done too.
TEST_P(Completions, FreeTheUnsignaledBeforeThem) {
  QpAsk ask;
  ask.cap.max_send_wr = 4;
  QpAsk deep;
  deep.cap.max_recv_wr = 64;
  const Pair pair = connect(type(), {}, ask, deep);
  ibv_qp_attr attr{};
  ibv_qp_init_attr created{};
  ASSERT_EQ(a.verbs().query_qp(pair.a, &attr, IBV_QP_CAP, &created), 0);
  const std::uint32_t depth = created.cap.max_send_wr;
  ASSERT_LE(depth, 64u);
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t i = 1; i <= depth; ++i) recv(pair.b, {room(0, 64)});
    for (std::uint32_t i = 1; i <= depth; ++i) {
      const unsigned flags = i == depth ? unsigned{IBV_SEND_SIGNALED} : 0u;
      ASSERT_EQ(post(pair.a, {{.sges = {a.sge(0, 8)}, .flags = flags}}).error, 0) << "round " << round << ", " << i;
    }
    await_success(a.send_cq(), "the last of a full queue");
    EXPECT_EQ(await(b.recv_cq(), depth, "a full queue of SENDs").size(), depth);
  }
}

TEST_P(Completions, OfTwoQpsInOneQueueTellThemApart) {
  const Pair first = connect(type());
  const Pair second = connect(type());
  recv(first.b, {room(0, 64)}, 1);
  recv(second.b, {room(128, 64)}, 2);
  send(second.a, {.sges = {a.sge(0, 8)}});
  const ibv_wc of_second = await_success(b.recv_cq(), "a SEND of the second pair");
  EXPECT_EQ(of_second.qp_num, second.b->qp_num);
  EXPECT_EQ(of_second.wr_id, 2u);
  send(first.a, {.sges = {a.sge(0, 8)}});
  const ibv_wc of_first = await_success(b.recv_cq(), "a SEND of the first pair");
  EXPECT_EQ(of_first.qp_num, first.b->qp_num);
  EXPECT_EQ(of_first.wr_id, 1u);
  EXPECT_EQ(await_success(a.send_cq(), "the first sent").qp_num, second.a->qp_num);
  EXPECT_EQ(await_success(a.send_cq(), "the second sent").qp_num, first.a->qp_num);
}

TEST_P(Completions, OfBothQueuesMayGoToOneCq) {
  QpAsk ask;
  ask.send_cq = ask.recv_cq = b.recv_cq();
  const Pair pair = connect(type(), {}, {}, ask);
  recv(pair.b, {room(0, 64)}, 1);
  send(pair.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a RECV").opcode, IBV_WC_RECV);
  recv(pair.a, {a.sge(128, 64 + grh())}, 2);
  send(pair.b, {.sges = {b.sge(0, 8)}, .id = 3});
  const ibv_wc wc = await_success(b.recv_cq(), "a SEND on the same CQ");
  EXPECT_EQ(wc.opcode, IBV_WC_SEND);
  EXPECT_EQ(wc.wr_id, 3u);
}

class Polling : public Rig {};

TEST_F(Polling, YieldsAtMostWhatWasAskedFor) {
  const Pair pair = connect(IBV_QPT_RC);
  for (std::uint64_t id = 0; id < 5; ++id) {
    recv(pair.b, {b.sge(0, 64)}, id);
    send(pair.a, {.sges = {a.sge(0, 8)}});
  }
  EXPECT_EQ(await(a.send_cq(), 5, "SENDs").size(), 5u);  // all are acknowledged: all RECVs are complete
  ibv_wc wcs[8];
  EXPECT_EQ(ibv_poll_cq(b.recv_cq(), 2, wcs), 2);
  EXPECT_EQ(wcs[0].wr_id, 0u);
  EXPECT_EQ(wcs[1].wr_id, 1u);
  int taken = 0;
  await_until([&] { return (taken += ibv_poll_cq(b.recv_cq(), 8, wcs)) >= 3; }, "the other three RECVs");
  EXPECT_EQ(taken, 3);
}

TEST_F(Polling, AnEmptyQueueYieldsNone) {
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(a.send_cq(), 1, &wc), 0);
}

TEST_F(Polling, RemovesEachCompletion) {
  const Pair pair = connect(IBV_QPT_RC);
  marker(pair);
  EXPECT_THAT(poll(a.send_cq()), IsEmpty());
  EXPECT_THAT(poll(b.recv_cq()), IsEmpty());
}

// The completions go many times round the queue.
TEST_F(Polling, ASmallQueueServesManyCompletions) {
  QpAsk ask_a;
  QpAsk ask_b;
  ask_a.send_cq = a.make_cq(2);
  ask_b.recv_cq = b.make_cq(2);
  const Pair pair = connect(IBV_QPT_RC, {}, ask_a, ask_b);
  for (std::uint64_t id = 0; id < 100; ++id) {
    recv(pair.b, {b.sge(0, 64)}, id);
    send(pair.a, {.sges = {a.sge(0, 8)}, .id = id});
    ASSERT_EQ(await_success(ask_b.recv_cq, "a RECV").wr_id, id);
    ASSERT_EQ(await_success(ask_a.send_cq, "a SEND").wr_id, id);
  }
}

}  // namespace
}  // namespace verbscope::conformance
