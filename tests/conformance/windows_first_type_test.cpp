// Memory windows of type 1.
#include "tests/conformance/windows.hpp"

namespace verbscope::conformance {
namespace {

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

}  // namespace
}  // namespace verbscope::conformance
