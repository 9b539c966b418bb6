// Memory windows of type 2, and the invalidation of their keys.
#include "tests/conformance/windows.hpp"

namespace verbscope::conformance {
namespace {

// Type 2 is bound by a work request with a key of the program's choice, and only one QP may use it.
class SecondType : public Windows {
 protected:
  ibv_mw* mw = nullptr;
  Pair pair;
  std::uint32_t key = 0;

  void SetUp() override {
    VERBSCOPE_NEEDS(supported() && (b.device().attributes().device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0,
                    "memory windows of type 2");
    mw = make(IBV_MW_TYPE_2);
    pair = connect(IBV_QPT_RC);
    key = ibv_inc_rkey(mw->rkey);
  }
  // rxe waits for a window before it destroys the QP that the window is bound to, for 50 s.
  void TearDown() override {
    if (mw != nullptr) {
      EXPECT_EQ(b.destroy(mw), 0);
    }
  }
  int bind(const ibv_mw_bind_info& info) { return post_bind(pair.b, mw, key, info); }
  void bind_and_wait() {
    ASSERT_EQ(bind(range()), 0);
    EXPECT_EQ(await_success(b.send_cq(), "a bind").opcode, IBV_WC_BIND_MW);
  }
  int invalidate(std::uint32_t of) { return post_invalidate(pair.b, of); }
  void send_invalidating(std::uint32_t of, std::uint32_t bytes = 8) {
    EXPECT_EQ(post_invalidating_send(pair.a, of, bytes), 0);
  }
};

TEST_F(SecondType, GrantsItsRangeByTheKeyChosen) {
  bind_and_wait();
  a.word(0) = 0x66;
  EXPECT_EQ(write(pair, key, window_address(8)), IBV_WC_SUCCESS);
  await_until([this] { return b.word(kPlace + kStart + 8) == 0x66; }, "the WRITE's bytes");
}

TEST_F(SecondType, GrantsNothingToOtherQps) {
  bind_and_wait();
  EXPECT_EQ(write(key, window_address()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SecondType, IsNotBoundTwice) {
  bind_and_wait();
  key = ibv_inc_rkey(key);
  ASSERT_EQ(bind(range()), 0);
  await_status(b.send_cq(), IBV_WC_MW_BIND_ERR, "a second bind");
}

TEST_F(SecondType, IsNotBoundToNothing) {
  ibv_mw_bind_info info = range();
  info.length = 0;
  ASSERT_EQ(bind(info), 0);
  await_status(b.send_cq(), IBV_WC_MW_BIND_ERR, "a bind of no bytes");
}

TEST_F(SecondType, IsRefusedByTheCallForTheFirst) {
  ibv_mw_bind request{.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = range()};
  EXPECT_EQ(ibv_bind_mw(pair.b, mw, &request), EINVAL);
}

TEST_F(SecondType, GrantsNothingOnceInvalidated) {
  bind_and_wait();
  ASSERT_EQ(invalidate(key), 0);
  EXPECT_EQ(await_success(b.send_cq(), "an invalidation").opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(write(pair, key, window_address()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SecondType, CanBeBoundAgainOnceInvalidated) {
  bind_and_wait();
  ASSERT_EQ(invalidate(key), 0);
  await_success(b.send_cq(), "an invalidation");
  mw->rkey = key;
  key = ibv_inc_rkey(key);
  bind_and_wait();
  EXPECT_EQ(write(pair, key, window_address()), IBV_WC_SUCCESS);
}

TEST_F(SecondType, IsNotInvalidatedByAnotherKey) {
  bind_and_wait();
  ASSERT_EQ(invalidate(key + 1), 0);
  EXPECT_NE(await_one(b.send_cq(), "an invalidation of an unknown key").status, IBV_WC_SUCCESS);
  EXPECT_EQ(state_of(b, pair.b), IBV_QPS_ERR);
}

TEST_F(SecondType, IsInvalidatedByThePeer) {
  bind_and_wait();
  recv(pair.b, {b.sge(0, 64)}, 5);
  a.word(0) = 12;
  send_invalidating(key);
  await_success(a.send_cq(), "a SEND that invalidates");
  const ibv_wc wc = await_success(b.recv_cq(), "its RECV");
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ((wc.wc_flags & IBV_WC_WITH_INV) != 0, !deviates("invalidation-flag"));
  EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(wc.invalidated_rkey, key);
  EXPECT_EQ(wc.byte_len, 8u);
  EXPECT_EQ(b.word(0), 12u);
  EXPECT_EQ(write(pair, key, window_address()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SecondType, IsInvalidatedByALongMessage) {
  bind_and_wait();
  fill(a.memory(), 20'000, 4);
  recv(pair.b, {b.sge(65536, 20'000)});
  send_invalidating(key, 20'000);
  await_success(a.send_cq(), "a long SEND that invalidates");
  EXPECT_EQ(await_success(b.recv_cq(), "its RECV").invalidated_rkey, key);
  EXPECT_TRUE(has_pattern(b.memory(65536), 20'000, 4));
}

TEST_F(SecondType, IsInvalidatedAfterTheWritesBefore) {
  bind_and_wait();
  recv(pair.b, {b.sge(0, 64)});
  a.word(8) = 99;
  send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {a.sge(8, 8)}, .remote = window_address(), .rkey = key});
  send_invalidating(key);
  EXPECT_EQ(await(a.send_cq(), 2, "a WRITE and a SEND").size(), 2u);
  EXPECT_EQ(await_success(b.recv_cq(), "the RECV").invalidated_rkey, key);
  EXPECT_EQ(b.word(kPlace + kStart), 99u);
}

// The key of a region is no window's.
TEST_F(SecondType, APeerInvalidatesNoRegion) {
  recv(pair.b, {b.sge(0, 64)});
  send_invalidating(b.mr()->rkey);
  EXPECT_NE(await_one(b.recv_cq(), "the RECV of an invalidation that fails").status, IBV_WC_SUCCESS);
  EXPECT_EQ(state_of(b, pair.b), IBV_QPS_ERR);
}

// ibv_wr_post(3): the same by the builder.
TEST_F(SecondType, IsBoundAndInvalidatedByTheBuilder) {
  constexpr std::uint64_t kOperations =
      IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_SEND;
  const Pair built{a.make_qp_ex(IBV_QPT_RC, kOperations), b.make_qp_ex(IBV_QPT_RC, kOperations)};
  connect(built);
  ibv_qp_ex* at_b = b.verbs().qp_to_qp_ex(built.b);
  const ibv_mw_bind_info info = range();
  const auto bind_by_builder = [&] {
    ibv_wr_start(at_b);
    at_b->wr_id = 21;
    at_b->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(at_b, mw, key, &info);
    ASSERT_EQ(ibv_wr_complete(at_b), 0);
    const ibv_wc wc = await_success(b.send_cq(), "a bind by the builder");
    EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
    EXPECT_EQ(wc.wr_id, 21u);
  };
  bind_by_builder();
  EXPECT_EQ(write(built, key, window_address()), IBV_WC_SUCCESS);
  recv(built.b, {b.sge(0, 64)});
  ibv_qp_ex* at_a = a.verbs().qp_to_qp_ex(built.a);
  ibv_wr_start(at_a);
  at_a->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_inv(at_a, key);
  ibv_wr_set_sge(at_a, a.mr()->lkey, a.address(), 8);
  ASSERT_EQ(ibv_wr_complete(at_a), 0);
  await_success(a.send_cq(), "a SEND by the builder that invalidates");
  EXPECT_EQ(await_success(b.recv_cq(), "its RECV").invalidated_rkey, key);
  mw->rkey = key;
  key = ibv_inc_rkey(key);
  bind_by_builder();
  ibv_wr_start(at_b);
  at_b->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_local_inv(at_b, key);
  ASSERT_EQ(ibv_wr_complete(at_b), 0);
  EXPECT_EQ(await_success(b.send_cq(), "an invalidation by the builder").opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(write(built, key, window_address()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SecondType, IsNotForDatagrams) {
  if (deviates("unsupported-operation-found-late")) GTEST_SKIP() << "unsupported-operation-found-late";
  const Pair datagrams = connect(IBV_QPT_UD);
  for (const ibv_wr_opcode opcode : {IBV_WR_BIND_MW, IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV}) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    EXPECT_EQ(post_one(datagrams.b, wr), EINVAL);
  }
}

}  // namespace
}  // namespace verbscope::conformance
