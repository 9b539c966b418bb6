// Posting: in which states, how much, and what is refused at once. InfiniBand Architecture Specification 1.3, volume 1,
// sections 10.3.1 (states) and 11.4.1 (Post Send and Post Receive Request); ibv_post_send(3), ibv_post_recv(3).
#include <tuple>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::Ge;

class Posting : public EachTransport {};
VERBSCOPE_EACH_TRANSPORT(Posting);

// Section 10.3.1: in RESET, INIT and RTR a posted send request is an immediate error.
TEST_P(Posting, SendsAreRefusedBeforeReadyToSend) {
  const Pair pair{a.make_qp(type()), b.make_qp(type())};
  ibv_ah* ah = datagram() ? a.make_ah(b) : nullptr;
  const Request request{.sges = {a.sge(0, 8)}, .ah = ah, .qpn = pair.b->qp_num};
  const Posted in_reset = post(pair.a, {request});
  ASSERT_EQ(modify(a, pair.a, to_init(a, type())), 0);
  const Posted in_init = post(pair.a, {request});
  ASSERT_EQ(modify(a, pair.a, to_rtr(a, type(), b, pair.b->qp_num)), 0);
  const Posted in_rtr = post(pair.a, {request});
  for (const Posted& posted : {in_reset, in_init, in_rtr}) {
    EXPECT_EQ(posted.error, EINVAL);
    if (!deviates("bad-wr-of-a-wrong-state")) {
      EXPECT_EQ(posted.bad, 0);
    }
  }
}

TEST_P(Posting, ReceivesAreRefusedInReset) {
  ibv_qp* qp = a.make_qp(type());
  EXPECT_EQ(post_recv(qp, {a.sge(0, 64)}).error, EINVAL);
}

// They wait there until the QP can receive.
TEST_P(Posting, ReceivesAreTakenFromInitOn) {
  const Pair pair{a.make_qp(type()), b.make_qp(type())};
  ASSERT_EQ(modify(b, pair.b, to_init(b, type())), 0);
  recv(pair.b, {room(0, 64)}, 7);
  ASSERT_EQ(modify(b, pair.b, to_rtr(b, type(), a, pair.a->qp_num)), 0);
  recv(pair.b, {room(0, 64)}, 8);
  ASSERT_EQ(bring_up(a, pair.a, b, pair.b->qp_num), 0);
  ibv_ah* ah = datagram() ? a.make_ah(b) : nullptr;
  for (int i = 0; i < 2; ++i) send(pair.a, {.sges = {a.sge(0, 8)}, .ah = ah, .qpn = pair.b->qp_num});
  EXPECT_THAT(ids(await(b.recv_cq(), 2, "SENDs to a QP in RTR")), ElementsAre(7, 8));
}

TEST_P(Posting, AFullSendQueueRefusesWithTheFirstThatDidNotFit) {
  QpAsk ask;
  ask.cap.max_send_wr = 4;
  const Pair pair{a.make_qp(type(), ask), b.make_qp(type())};
  connect(pair);
  ibv_qp_attr attr{};
  ibv_qp_init_attr created{};
  ASSERT_EQ(a.verbs().query_qp(pair.a, &attr, IBV_QP_CAP, &created), 0);
  const auto depth = static_cast<int>(created.cap.max_send_wr);
  // One list: nothing of it is done before the call returns.
  std::vector<Request> list;
  for (int i = 0; i < 4 * depth; ++i) {
    list.push_back({.sges = {a.sge(0, 8)}, .id = static_cast<std::uint64_t>(i), .flags = 0});
  }
  const Posted posted = post(pair.a, list);
  EXPECT_EQ(posted.error, ENOMEM);
  EXPECT_THAT(posted.bad, testing::AllOf(Ge(4), Ge(depth)));
  EXPECT_LE(posted.bad, 2 * depth);
}

TEST_P(Posting, AFullReceiveQueueRefuses) {
  QpAsk ask;
  ask.cap.max_recv_wr = 4;
  const Pair pair = connect(type(), {}, {}, ask);
  ibv_qp_attr attr{};
  ibv_qp_init_attr created{};
  ASSERT_EQ(b.verbs().query_qp(pair.b, &attr, IBV_QP_CAP, &created), 0);
  int taken = 0;
  Posted last;
  while (last.error == 0 && taken < 100'000) {
    last = post_recv(pair.b, {room(0, 8)}, static_cast<std::uint64_t>(taken));
    if (last.error == 0) ++taken;
  }
  EXPECT_EQ(last.error, ENOMEM);
  EXPECT_EQ(last.bad, 0);
  EXPECT_GE(taken, 4);
  EXPECT_GE(taken, static_cast<int>(created.cap.max_recv_wr));
  send(pair.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND to the full queue").wr_id, 0u);
  EXPECT_EQ(post_recv(pair.b, {room(0, 8)}).error, 0) << "a place is free again";
}

TEST_P(Posting, TooManySgesAreRefused) {
  const Pair pair = connect(type());
  ibv_qp_attr attr{};
  ibv_qp_init_attr created{};
  ASSERT_EQ(a.verbs().query_qp(pair.a, &attr, IBV_QP_CAP, &created), 0);
  const std::vector<ibv_sge> of_send(created.cap.max_send_sge + 1, a.sge(0, 1));
  const Posted sent = post(pair.a, {{.sges = of_send}});
  EXPECT_THAT(sent.error, AnyOf(EINVAL, ENOMEM)) << "which of the two is not specified";
  EXPECT_EQ(sent.bad, 0);
  const std::vector<ibv_sge> of_recv(created.cap.max_recv_sge + 1, a.sge(64, 16));
  const Posted received = post_recv(pair.a, of_recv);
  EXPECT_THAT(received.error, AnyOf(EINVAL, ENOMEM));
  EXPECT_EQ(received.bad, 0);
}

// ibv_post_send(3): processing stops at the first failure; what was before it is posted.
TEST_P(Posting, WhatIsBeforeABadRequestIsDone) {
  const Pair pair = connect(type());
  for (int i = 0; i < 3; ++i) recv(pair.b, {room(0, 64)});
  std::vector<Request> list;
  for (std::uint64_t id = 10; id < 13; ++id) list.push_back({.sges = {a.sge(0, 8)}, .id = id});
  list[1].sges.assign(64, a.sge(0, 1));
  const Posted posted = post(pair.a, list);
  EXPECT_NE(posted.error, 0);
  EXPECT_EQ(posted.bad, 1);
  EXPECT_EQ(await_success(a.send_cq(), "the request before the bad one").wr_id, 10u);
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 20});
  EXPECT_EQ(await_success(a.send_cq(), "a request after the failed post").wr_id, 20u);
  EXPECT_EQ(await(b.recv_cq(), 2, "both at the receiver").size(), 2u);
  EXPECT_TRUE(poll(b.recv_cq()).empty());
}

TEST_P(Posting, AnUnknownOperationIsRefused) {
  const Pair pair = connect(type());
  const Posted posted = post(pair.a, {{.opcode = static_cast<ibv_wr_opcode>(15), .sges = {a.sge(0, 8)}}});
  if (deviates("unsupported-operation-found-late")) {
    EXPECT_EQ(posted.error, 0);
    await_status(a.send_cq(), IBV_WC_LOC_QP_OP_ERR, "an unknown operation");
  } else {
    EXPECT_EQ(posted.error, EINVAL);
    EXPECT_EQ(posted.bad, 0);
  }
}

// The table of ibv_post_send(3): which transport has which operation.
class Unsupported : public Rig, public testing::WithParamInterface<std::tuple<ibv_qp_type, ibv_wr_opcode>> {};
INSTANTIATE_TEST_SUITE_P(
    , Unsupported,
    testing::Values(std::tuple{IBV_QPT_UC, IBV_WR_RDMA_READ}, std::tuple{IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD},
                    std::tuple{IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP}, std::tuple{IBV_QPT_UD, IBV_WR_RDMA_WRITE},
                    std::tuple{IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM}, std::tuple{IBV_QPT_UD, IBV_WR_RDMA_READ},
                    std::tuple{IBV_QPT_UD, IBV_WR_ATOMIC_FETCH_AND_ADD},
                    std::tuple{IBV_QPT_UD, IBV_WR_ATOMIC_CMP_AND_SWP}),
    [](const auto& which) {
      return std::string(opcode_name(std::get<1>(which.param))) + "Over" + transport_name(std::get<0>(which.param));
    });

// Section 11.4.1.1: an operation that the service does not have is an immediate error.
TEST_P(Unsupported, IsNotCarriedOut) {
  const auto [type, opcode] = GetParam();
  const Pair pair = connect(type);
  fill(a.memory(), 8, 1);
  Request request{.opcode = opcode, .sges = {a.sge(0, 8)}, .remote = b.address(), .rkey = b.mr()->rkey};
  const Posted posted = post(pair.a, {request});
  if (deviates("unsupported-operation-found-late")) {
    EXPECT_EQ(posted.error, 0);
    await_status(a.send_cq(), IBV_WC_LOC_QP_OP_ERR, "an operation that the transport has not");
  } else {
    EXPECT_EQ(posted.error, EINVAL);
    EXPECT_EQ(posted.bad, 0);
  }
  EXPECT_TRUE(is_zero(b.memory(), 8));
}

struct Limit {
  const char* name;
  std::uint32_t ibv_qp_cap::*field;
  int ibv_device_attr::*offered;

  friend std::ostream& operator<<(std::ostream& out, const Limit& limit) { return out << limit.name; }
};
class Limits : public Rig, public testing::WithParamInterface<Limit> {};
INSTANTIATE_TEST_SUITE_P(, Limits,
                         testing::Values(Limit{"SendDepth", &ibv_qp_cap::max_send_wr, &ibv_device_attr::max_qp_wr},
                                         Limit{"ReceiveDepth", &ibv_qp_cap::max_recv_wr, &ibv_device_attr::max_qp_wr},
                                         Limit{"SendSges", &ibv_qp_cap::max_send_sge, &ibv_device_attr::max_sge},
                                         Limit{"ReceiveSges", &ibv_qp_cap::max_recv_sge, &ibv_device_attr::max_sge}),
                         [](const auto& which) { return std::string(which.param.name); });

TEST_P(Limits, AQpOverThemIsRefused) {
  const auto offered = static_cast<std::uint32_t>(a.device().attributes().*GetParam().offered);
  QpAsk ask;
  ask.cap.*GetParam().field = offered + 1;
  ibv_qp_init_attr attr = init_attributes(a, IBV_QPT_RC, ask);
  errno = 0;
  ibv_qp* qp = a.verbs().create_qp(a.pd(), &attr);
  EXPECT_EQ(qp, nullptr);
  EXPECT_EQ(errno, EINVAL);
  if (qp != nullptr) a.verbs().destroy_qp(qp);
}

class CompletionQueues : public Rig {};

TEST_F(CompletionQueues, OutsideOfTheLimitsAreRefused) {
  const int most = a.device().attributes().max_cqe;
  for (const int entries : {0, -1, most + 1}) {
    errno = 0;
    ibv_cq* cq = a.verbs().create_cq(a.context(), entries, nullptr, 0);
    EXPECT_EQ(cq, nullptr) << entries << " entries";
    EXPECT_EQ(errno, EINVAL) << entries << " entries";
    if (cq != nullptr) a.verbs().destroy_cq(cq);
  }
}

TEST_F(CompletionQueues, HaveAtLeastTheEntriesAskedFor) {
  for (const int entries : {1, 3, 100}) EXPECT_GE(a.make_cq(entries)->cqe, entries);
}

// ibv_poll_cq(3), NOTES: a CQ that overran cannot be used any more.
TEST_F(CompletionQueues, AnOverrunIsNotSilent) {
  ibv_cq* small = b.make_cq(1);
  QpAsk ask;
  ask.recv_cq = small;
  ask.cap.max_recv_wr = static_cast<std::uint32_t>(small->cqe) + 4;
  const Pair pair = connect(IBV_QPT_UC, {}, {}, ask);
  const int messages = small->cqe + 4;
  for (int i = 0; i < messages; ++i) recv(pair.b, {b.sge(0, 8)}, static_cast<std::uint64_t>(i));
  for (int i = 0; i < messages; ++i) {
    send(pair.a, {.sges = {a.sge(0, 8)}});
    await_success(a.send_cq(), "a SEND");
  }
  // The completions that found room, in order, and then an error.
  std::vector<ibv_wc> found;
  int taken = 0;
  await_until(
      [&] {
        ibv_wc wc{};
        while ((taken = ibv_poll_cq(small, 1, &wc)) == 1) found.push_back(wc);
        return taken < 0 || (deviates("cq-overrun-loses-completions") && !found.empty());
      },
      "the overrun CQ to fail");
  EXPECT_LT(found.size(), static_cast<std::size_t>(messages));
}

}  // namespace
}  // namespace verbscope::conformance
