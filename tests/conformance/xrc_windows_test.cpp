// Memory windows on XRC. ibv_post_send(3) has their work on XRC_SEND; a target has no send queue, so a window is bound
// by a QP that sends in the other direction.
#include "tests/conformance/windows.hpp"
#include "tests/conformance/xrc.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

// a accesses b's memory through a target and a shared queue of b.
class XrcWindows : public Windows, public Xrc {
 protected:
  ibv_srq* srq = nullptr;
  ibv_qp* binder = nullptr;       // of b, connected to a target of a
  ibv_srq* queue_of_a = nullptr;  // that its requests name
  Pair pair;

  void SetUp() override {
    Xrc::SetUp();
    if (IsSkipped()) return;
    VERBSCOPE_NEEDS(supported(), "memory windows");
    srq = make_queue(b, domain);
    binder = b.make_qp(IBV_QPT_XRC_SEND);
    ibv_xrcd* const of_a = open(a, -1, O_CREAT);
    queue_of_a = make_queue(a, of_a);
    connect({make_target(a, of_a), binder});
    pair = link();
  }

  int bind_first(ibv_mw* mw, const ibv_mw_bind_info& info) {
    ibv_mw_bind request{.wr_id = 9, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
    return ibv_bind_mw(binder, mw, &request);
  }
  int bind_second(ibv_mw* mw, std::uint32_t key) { return post_bind(binder, mw, key, range()); }
  void expect_done(ibv_wc_opcode opcode) { EXPECT_EQ(await_success(b.send_cq(), "work on a key").opcode, opcode); }
  ibv_mw* make_bound_first() {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    EXPECT_EQ(bind_first(mw, range()), 0);
    expect_done(IBV_WC_BIND_MW);
    return mw;
  }
  ibv_wc_status access(ibv_wr_opcode opcode, std::uint32_t key, ibv_srq* queue, std::size_t offset = 0) {
    send(pair.a,
         with_queue({.opcode = opcode, .sges = {a.sge(0, 8)}, .remote = window_address(offset), .rkey = key}, queue));
    return await_one(a.send_cq(), "a request by a window's key").status;
  }
};

TEST_F(XrcWindows, FirstTypeGrantsItsRange) {
  ibv_mw* mw = make_bound_first();
  a.word(0) = 0x55;
  EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mw->rkey, srq, 64), IBV_WC_SUCCESS);
  await_until([this] { return b.word(kPlace + kStart + 64) == 0x55; }, "the WRITE's bytes");
  b.word(kPlace + kStart) = 7;
  EXPECT_EQ(access(IBV_WR_RDMA_READ, mw->rkey, srq), IBV_WC_SUCCESS);
  EXPECT_EQ(a.word(0), 7u);
  send(pair.a, with_queue({.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                           .sges = {a.sge(0, 8)},
                           .remote = window_address(),
                           .rkey = mw->rkey,
                           .compare_add = 3},
                          srq));
  await_success(a.send_cq(), "an atomic by a window's key");
  EXPECT_EQ(b.word(kPlace + kStart), 10u);
}

TEST_F(XrcWindows, FirstTypeGrantsNothingOutside) {
  EXPECT_EQ(access(IBV_WR_RDMA_WRITE, make_bound_first()->rkey, srq, kSize - 4), IBV_WC_REM_ACCESS_ERR);
}

// Annex A14: the PD of a request is that of its queue.
TEST_F(XrcWindows, FirstTypeGrantsNothingToQueuesOfAnotherPd) {
  EXPECT_EQ(access(IBV_WR_RDMA_WRITE, make_bound_first()->rkey, make_queue(b, domain, nullptr, b.make_pd())),
            IBV_WC_REM_ACCESS_ERR);
}

TEST_F(XrcWindows, FirstTypeIsForRcToo) {
  EXPECT_EQ(write(make_bound_first()->rkey, window_address()), IBV_WC_SUCCESS);
}

TEST_F(XrcWindows, FirstTypeOfAnRcQpIsForXrcToo) {
  ibv_mw* mw = make(IBV_MW_TYPE_1);
  ibv_mw_bind request{.wr_id = 9, .send_flags = IBV_SEND_SIGNALED, .bind_info = range()};
  ASSERT_EQ(ibv_bind_mw(connect(IBV_QPT_RC).b, mw, &request), 0);
  expect_done(IBV_WC_BIND_MW);
  EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mw->rkey, srq), IBV_WC_SUCCESS);
}

TEST_F(XrcWindows, FirstTypeGrantsNothingOnceBoundToNothing) {
  ibv_mw* mw = make_bound_first();
  ASSERT_EQ(bind_first(mw, {}), 0);
  expect_done(IBV_WC_BIND_MW);
  EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mw->rkey, srq), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(XrcWindows, BindsCompleteInOrderWithRequests) {
  send(binder, with_queue(read_of(b.sge(0, 8), a, 0), queue_of_a));
  ASSERT_EQ(bind_first(make(IBV_MW_TYPE_1), range()), 0);
  send(binder, with_queue(read_of(b.sge(8, 8), a, 0), queue_of_a));
  EXPECT_THAT(ids(await(b.send_cq(), 3, "a READ, a bind and a READ")), ElementsAre(1, 9, 1));
}

// IBA 10.6.7.2.2 (type 2B): only the QP that binds the window may use it. A sender of XRC receives no requests, and
// its target's number is another one.
TEST_F(XrcWindows, SecondTypeGrantsNothingToTargets) {
  ibv_mw* mw = make(IBV_MW_TYPE_2);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind_second(mw, key), 0);
  expect_done(IBV_WC_BIND_MW);
  EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, srq), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(XrcWindows, SecondTypeIsBoundAgainOnceInvalidated) {
  ibv_mw* mw = make(IBV_MW_TYPE_2);
  std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind_second(mw, key), 0);
  ASSERT_EQ(post_invalidate(binder, key), 0);
  expect_done(IBV_WC_BIND_MW);
  expect_done(IBV_WC_LOCAL_INV);
  mw->rkey = key;
  key = ibv_inc_rkey(key);
  ASSERT_EQ(bind_second(mw, key), 0);
  expect_done(IBV_WC_BIND_MW);
  ASSERT_EQ(bind_second(mw, ibv_inc_rkey(key)), 0);
  await_status(b.send_cq(), IBV_WC_MW_BIND_ERR, "a bind of a bound window");
}

TEST_F(XrcWindows, PeersInvalidateNoWindowOfAnotherQp) {
  ibv_mw* mw = make(IBV_MW_TYPE_2);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind_second(mw, key), 0);
  expect_done(IBV_WC_BIND_MW);
  srq_recv(srq, {b.sge(0, 64)});
  ASSERT_EQ(post_invalidating_send(pair.a, key, 8, number_of(srq)), 0);
  EXPECT_NE(await_one(a.send_cq(), "a SEND that invalidates").status, IBV_WC_SUCCESS);
  EXPECT_NE(await_one(b.recv_cq(), "its RECV").status, IBV_WC_SUCCESS);
}

TEST_F(XrcWindows, TargetsBindNothing) {
  ibv_mw_bind request{.wr_id = 9, .send_flags = IBV_SEND_SIGNALED, .bind_info = range()};
  EXPECT_NE(ibv_bind_mw(pair.b, make(IBV_MW_TYPE_1), &request), 0);
}

TEST_F(XrcWindows, BuilderBindsAndInvalidates) {
  ibv_qp* qp =
      b.make_qp_ex(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV);
  connect({make_target(a, open(a, -1, O_CREAT)), qp});
  ibv_mw* mw = make(IBV_MW_TYPE_2);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  const ibv_mw_bind_info info = range();
  ibv_qp_ex* ex = b.verbs().qp_to_qp_ex(qp);
  ibv_wr_start(ex);
  ex->wr_flags = IBV_SEND_SIGNALED;
  ex->wr_id = 1;
  ibv_wr_bind_mw(ex, mw, key, &info);
  ex->wr_id = 2;
  ibv_wr_local_inv(ex, key);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_THAT(ids(await(b.send_cq(), 2, "a bind and an invalidation")), ElementsAre(1, 2));
}

}  // namespace
}  // namespace verbscope::conformance
