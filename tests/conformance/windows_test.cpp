// Memory windows, and the invalidation of their keys. InfiniBand Architecture Specification 1.3, volume 1, section
// 10.6.7; ibv_alloc_mw(3), ibv_bind_mw(3), ibv_post_send(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

constexpr unsigned kWindowAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class Windows : public Rig {
 protected:
  static constexpr std::size_t kPlace = 8192;   // of the region in b's memory
  static constexpr std::size_t kLength = 8192;  // bytes
  static constexpr std::size_t kStart = 1024;   // of the window in the region
  static constexpr std::size_t kSize = 2048;    // bytes

  ibv_mr* mr = b.make_mr(kPlace, kLength, kAllAccess | IBV_ACCESS_MW_BIND);

  bool supported() const { return (b.device().attributes().device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0; }
  std::uint64_t window_address(std::size_t offset = 0) const { return b.address(kPlace + kStart + offset); }
  ibv_mw* make(ibv_mw_type type) {
    ibv_mw* mw = ibv_alloc_mw(b.pd(), type);
    return b.keep(mw, "memory window", [mw] { return ibv_dealloc_mw(mw); });
  }
  ibv_mw_bind_info range(unsigned access = kWindowAccess) const {
    return {.mr = mr, .addr = window_address(), .length = kSize, .mw_access_flags = access};
  }
  // The status of a WRITE of 8 bytes over a new pair by the key of a window.
  ibv_wc_status write(std::uint32_t key, std::uint64_t address) { return write(connect(IBV_QPT_RC), key, address); }
  ibv_wc_status write(const Pair& pair, std::uint32_t key, std::uint64_t address) {
    send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {a.sge(0, 8)}, .remote = address, .rkey = key});
    return await_one(a.send_cq(), "a WRITE by a window's key").status;
  }
  int post_one(ibv_qp* qp, ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
};

// Type 1 is bound by a call of its own, which also chooses the key.
class FirstType : public Windows {
 protected:
  ibv_mw* mw = nullptr;
  Pair pair;

  void SetUp() override {
    VERBSCOPE_NEEDS(supported(), "memory windows");
    mw = make(IBV_MW_TYPE_1);
    pair = connect(IBV_QPT_RC);
  }
  int bind(const ibv_mw_bind_info& info, unsigned flags = IBV_SEND_SIGNALED, std::uint64_t id = 9) {
    ibv_mw_bind request{.wr_id = id, .send_flags = flags, .bind_info = info};
    return ibv_bind_mw(pair.b, mw, &request);
  }
  void bind_and_wait(const ibv_mw_bind_info& info) {
    ASSERT_EQ(bind(info), 0);
    EXPECT_EQ(await_success(b.send_cq(), "a bind").opcode, IBV_WC_BIND_MW);
  }
};

TEST_F(FirstType, GrantsItsRange) {
  bind_and_wait(range());
  a.word(0) = 0x55;
  EXPECT_EQ(write(mw->rkey, window_address(64)), IBV_WC_SUCCESS);
  await_until([this] { return b.word(kPlace + kStart + 64) == 0x55; }, "the WRITE's bytes");
}

TEST_F(FirstType, CompletesWithItsId) {
  ASSERT_EQ(bind(range(), IBV_SEND_SIGNALED, 1234), 0);
  EXPECT_EQ(await_success(b.send_cq(), "a bind").wr_id, 1234u);
}

TEST_F(FirstType, UnsignaledHasNoCompletion) {
  recv(pair.a, {a.sge(0, 64)});
  ASSERT_EQ(bind(range(), 0, 1), 0);
  send(pair.b, {.sges = {b.sge(0, 8)}, .id = 2});
  EXPECT_EQ(await_success(b.send_cq(), "the SEND behind a bind").wr_id, 2u);
  EXPECT_EQ(write(mw->rkey, window_address()), IBV_WC_SUCCESS);
}

TEST_F(FirstType, GrantsReads) {
  bind_and_wait(range(IBV_ACCESS_REMOTE_READ));
  fill(b.memory(kPlace + kStart), 100, 3);
  send(pair.a, {.opcode = IBV_WR_RDMA_READ, .sges = {a.sge(0, 100)}, .remote = window_address(), .rkey = mw->rkey});
  await_success(a.send_cq(), "a READ by a window's key");
  EXPECT_TRUE(has_pattern(a.memory(), 100, 3));
}

TEST_F(FirstType, GrantsAtomics) {
  bind_and_wait(range(IBV_ACCESS_REMOTE_ATOMIC));
  b.word(kPlace + kStart) = 5;
  send(pair.a, {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                .sges = {a.sge(0, 8)},
                .remote = window_address(),
                .rkey = mw->rkey,
                .compare_add = 2});
  await_success(a.send_cq(), "an atomic by a window's key");
  EXPECT_EQ(a.word(0), 5u);
}

TEST_F(FirstType, GrantsNoMoreThanItsAccess) {
  bind_and_wait(range(IBV_ACCESS_REMOTE_READ));
  EXPECT_EQ(write(mw->rkey, window_address()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FirstType, GrantsNothingOutsideOfItsRange) {
  const ibv_wc_status outside = deviates("window-range-unchecked") ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
  bind_and_wait(range());
  EXPECT_EQ(write(mw->rkey, window_address(kSize - 4)), outside);
  EXPECT_EQ(write(mw->rkey, b.address(kPlace + kStart - 8)), outside);
  EXPECT_EQ(write(mw->rkey, b.address(kPlace + kLength)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FirstType, GrantsNothingBeforeItIsBound) {
  EXPECT_EQ(write(mw->rkey, window_address()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FirstType, ServesAllQpsOfItsPd) {
  bind_and_wait(range());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(write(mw->rkey, window_address()), IBV_WC_SUCCESS);
}

TEST_F(FirstType, GetsANewKeyWithEachBind) {
  const std::uint32_t unbound = mw->rkey;
  bind_and_wait(range());
  const std::uint32_t first = mw->rkey;
  EXPECT_NE(first, unbound);
  bind_and_wait(range());
  EXPECT_NE(mw->rkey, first);
  EXPECT_EQ(write(first, window_address()), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(write(mw->rkey, window_address()), IBV_WC_SUCCESS);
}

TEST_F(FirstType, CanMove) {
  bind_and_wait(range());
  ibv_mw_bind_info other = range();
  other.addr = b.address(kPlace + 4096);
  bind_and_wait(other);
  EXPECT_EQ(write(mw->rkey, b.address(kPlace + 4096)), IBV_WC_SUCCESS);
  if (!deviates("window-range-unchecked")) {
    EXPECT_EQ(write(mw->rkey, window_address()), IBV_WC_REM_ACCESS_ERR);
  }
}

// Section 10.6.7: a bind of no bytes ends the binding.
TEST_F(FirstType, BoundToNothingGrantsNothing) {
  if (deviates("bind-without-a-region")) GTEST_SKIP() << "bind-without-a-region";
  bind_and_wait(range());
  bind_and_wait({});
  EXPECT_EQ(write(mw->rkey, window_address()), IBV_WC_REM_ACCESS_ERR);
}

// ibv_bind_mw(3): a send behind a bind on one QP is ordered after it.
TEST_F(FirstType, IsBoundWhenTheNextMessageComes) {
  recv(pair.a, {a.sge(0, 64)});
  ASSERT_EQ(bind(range(), 0), 0);
  b.word(0) = mw->rkey;
  send(pair.b, {.sges = {b.sge(0, 8)}});
  await_success(a.recv_cq(), "the message with the key");
  EXPECT_EQ(write(static_cast<std::uint32_t>(a.word(0)), window_address()), IBV_WC_SUCCESS);
}

TEST_F(FirstType, NeedsARegionThatAllowsBinding) {
  ibv_mw_bind_info info = range();
  info.mr = b.make_mr(kPlace, kLength, kAllAccess);
  ASSERT_EQ(bind(info), 0);
  await_status(b.send_cq(), IBV_WC_MW_BIND_ERR, "a bind to a region without the right");
}

TEST_F(FirstType, NeedsLocalWriteForRemoteWrite) {
  ibv_mw_bind_info info = range(IBV_ACCESS_REMOTE_WRITE);
  info.mr = b.make_mr(kPlace, kLength, IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
  ASSERT_EQ(bind(info), 0);
  await_status(b.send_cq(), IBV_WC_MW_BIND_ERR, "a bind for writes to a region that is only read");
}

TEST_F(FirstType, BeyondTheRegionIsAnError) {
  ibv_mw_bind_info info = range();
  info.length = kLength;
  ASSERT_EQ(bind(info), 0);
  await_status(b.send_cq(), IBV_WC_MW_BIND_ERR, "a bind beyond the region");
}

TEST_F(FirstType, OfAnotherPdThanTheRegionIsRefused) {
  ibv_mw_bind_info info = range();
  info.mr = b.make_mr(kPlace, kLength, kAllAccess | IBV_ACCESS_MW_BIND, b.make_pd());
  EXPECT_EQ(bind(info), EPERM);
}

TEST_F(FirstType, WithARangeButNoRegionIsRefused) {
  if (deviates("bind-without-a-region")) GTEST_SKIP() << "bind-without-a-region";
  ibv_mw_bind_info info = range();
  info.mr = nullptr;
  EXPECT_EQ(bind(info), EINVAL);
}

TEST_F(FirstType, KeepsItsRegionBusy) {
  bind_and_wait(range());
  EXPECT_THAT(b.destroy(mr), testing::AnyOf(EBUSY, EINVAL));
  EXPECT_EQ(b.destroy(mw), 0);
  EXPECT_EQ(b.destroy(mr), 0);
}

TEST_F(FirstType, GrantsNothingWhenItIsGone) {
  bind_and_wait(range());
  const std::uint32_t key = mw->rkey;
  EXPECT_EQ(b.destroy(mw), 0);
  EXPECT_EQ(write(key, window_address()), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(b.destroy(mr), 0);
}

// The PD has a window still.
TEST_F(FirstType, KeepsItsPdBusy) {
  ibv_pd* pd = b.make_pd();
  ibv_mw* other = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(b.destroy(pd), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(other), 0);
  EXPECT_EQ(b.destroy(pd), 0);
}

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
  int bind(const ibv_mw_bind_info& info) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = key;
    wr.bind_mw.bind_info = info;
    return post_one(pair.b, wr);
  }
  void bind_and_wait() {
    ASSERT_EQ(bind(range()), 0);
    EXPECT_EQ(await_success(b.send_cq(), "a bind").opcode, IBV_WC_BIND_MW);
  }
  int invalidate(std::uint32_t of) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = of;
    return post_one(pair.b, wr);
  }
  // A SEND from a to b that invalidates a key of b.
  void send_invalidating(std::uint32_t of, std::uint32_t bytes = 8) {
    ibv_sge piece = a.sge(0, bytes);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.invalidate_rkey = of;
    EXPECT_EQ(post_one(pair.a, wr), 0);
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
