// Destroying: children before parents, and what becomes of work and peers. InfiniBand Architecture Specification 1.3,
// volume 1, section 11.2 (the verbs that destroy return an error while the resource is in use); ibv_destroy_cq(3),
// ibv_dealloc_pd(3), ibv_destroy_srq(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Destroying : public Rig {
 protected:
  // Side a cannot destroy `parent` before `child`.
  template <class Parent, class Child>
  void expect_child_first(Parent* parent, Child* child) {
    EXPECT_EQ(a.destroy(parent), EBUSY);
    EXPECT_EQ(a.destroy(child), 0);
    EXPECT_EQ(a.destroy(parent), 0);
  }
};

TEST_F(Destroying, APdWithARegionIsRefused) {
  ibv_pd* pd = a.make_pd();
  expect_child_first(pd, a.make_mr(0, 4096, kAllAccess, pd));
}

TEST_F(Destroying, APdWithAQpIsRefused) {
  QpAsk ask;
  ask.pd = a.make_pd();
  expect_child_first(ask.pd, a.make_qp(IBV_QPT_RC, ask));
}

TEST_F(Destroying, APdWithAnAddressHandleIsRefused) {
  ibv_pd* pd = a.make_pd();
  ibv_ah_attr attr = path_between(a, b);
  ibv_ah* ah = a.verbs().create_ah(pd, &attr);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(a.destroy(pd), EBUSY);
  EXPECT_EQ(a.verbs().destroy_ah(ah), 0);
  EXPECT_EQ(a.destroy(pd), 0);
}

TEST_F(Destroying, APdWithASharedReceiveQueueIsRefused) {
  ibv_pd* pd = a.make_pd();
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = 4;
  attr.attr.max_sge = 1;
  ibv_srq* srq = a.verbs().create_srq(pd, &attr);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(a.destroy(pd), EBUSY);
  EXPECT_EQ(a.verbs().destroy_srq(srq), 0);
  EXPECT_EQ(a.destroy(pd), 0);
}

TEST_F(Destroying, TheCqOfASendQueueIsRefused) {
  QpAsk ask;
  ask.send_cq = a.make_cq(4);
  expect_child_first(ask.send_cq, a.make_qp(IBV_QPT_RC, ask));
}

TEST_F(Destroying, TheCqOfAReceiveQueueIsRefused) {
  QpAsk ask;
  ask.recv_cq = a.make_cq(4);
  expect_child_first(ask.recv_cq, a.make_qp(IBV_QPT_UD, ask));
}

TEST_F(Destroying, ARefusedObjectWorksOn) {
  QpAsk ask;
  ask.send_cq = a.make_cq(16);
  const Pair pair = connect(IBV_QPT_RC, {}, ask);
  EXPECT_EQ(a.destroy(ask.send_cq), EBUSY);
  recv(pair.b, {b.sge(0, 64)});
  send(pair.a, {.sges = {a.sge(0, 8)}});
  await_success(ask.send_cq, "a completion in the CQ that could not be destroyed");
}

TEST_F(Destroying, AQpWithOutstandingWorkIsAllowed) {
  const Pair pair = connect(IBV_QPT_RC);
  for (int i = 0; i < 4; ++i) {
    recv(pair.a, {a.sge(0, 64)});
    send(pair.a, {.sges = {a.sge(0, 8)}});  // no RECV at b: it waits
  }
  EXPECT_EQ(a.destroy(pair.a), 0);
  const Pair next = connect(IBV_QPT_RC);
  marker(next);
}

TEST_F(Destroying, AQpInEachStateIsAllowed) {
  ibv_qp* reset = a.make_qp(IBV_QPT_RC);
  ibv_qp* init = a.make_qp(IBV_QPT_RC);
  ASSERT_EQ(modify(a, init, to_init(a, IBV_QPT_RC)), 0);
  ibv_qp* failed = a.make_qp(IBV_QPT_RC);
  ASSERT_EQ(bring_up(a, failed, b, 0x100), 0);
  ASSERT_EQ(modify(a, failed, to_state(IBV_QPS_ERR)), 0);
  for (ibv_qp* qp : {reset, init, failed}) EXPECT_EQ(a.destroy(qp), 0);
}

TEST_F(Destroying, ARegionEndsRemoteAccessToIt) {
  const Pair pair = connect(IBV_QPT_RC);
  ibv_mr* region = b.make_mr(0, 4096, kAllAccess);
  Request request = write_to(a.sge(0, 8), b, 0);
  request.rkey = region->rkey;
  send(pair.a, request);
  await_success(a.send_cq(), "a WRITE to a region");
  EXPECT_EQ(b.destroy(region), 0);
  send(pair.a, request);
  await_status(a.send_cq(), IBV_WC_REM_ACCESS_ERR, "a WRITE to a region that is gone");
}

TEST_F(Destroying, ARegionLeavesOthersOverTheSameMemory) {
  const Pair pair = connect(IBV_QPT_RC);
  EXPECT_EQ(b.destroy(b.make_mr(0, 4096, kAllAccess)), 0);
  fill(a.memory(), 8, 1);
  send(pair.a, write_to(a.sge(0, 8), b, 0));
  await_success(a.send_cq(), "a WRITE by the other region's key");
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(), 8, 1));
}

TEST_F(Destroying, ManyTimesLeavesNothing) {
  for (int i = 0; i < 50; ++i) {
    QpAsk ask;
    ask.send_cq = ask.recv_cq = a.make_cq(8);
    ask.pd = a.make_pd();
    ibv_qp* qp = a.make_qp(IBV_QPT_UC, ask);
    EXPECT_EQ(a.destroy(qp), 0);
    EXPECT_EQ(a.destroy(ask.send_cq), 0);
    EXPECT_EQ(a.destroy(ask.pd), 0);
  }
}

}  // namespace
}  // namespace verbscope::conformance
