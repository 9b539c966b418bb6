// The work request builder: WRITEs, READs, atomics. ibv_wr_post(3) (the ibv_wr_* calls), ibv_create_qp_ex(3).
#include "tests/conformance/builder_rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

class BuilderWrites : public BuilderRig, public testing::WithParamInterface<ibv_qp_type> {
 protected:
  ibv_qp_type type() const { return GetParam(); }
};
VERBSCOPE_EACH_CONNECTED(BuilderWrites);

TEST_P(BuilderWrites, Write) {
  const Built built = build(type());
  fill(a.memory(), 5000, 1);
  ibv_wr_start(built.ex);
  next(built, 4);
  ibv_wr_rdma_write(built.ex, b.mr()->rkey, b.address(77));
  set_sge(built, 0, 5000);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  const ibv_wc wc = await_success(a.send_cq(), "a built WRITE");
  EXPECT_EQ(wc.wr_id, 4u);
  EXPECT_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
  marker(built);
  EXPECT_TRUE(has_pattern(b.memory(77), 5000, 1));
}

TEST_P(BuilderWrites, WriteImmediateData) {
  const Built built = build(type());
  fill(a.memory(), 50, 1);
  recv(built.b, {}, 6);
  ibv_wr_start(built.ex);
  next(built, 4);
  ibv_wr_rdma_write_imm(built.ex, b.mr()->rkey, b.address(77), 0x99);
  set_sge(built, 0, 50);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  const ibv_wc wc = await_success(b.recv_cq(), "a built WRITE with immediate data");
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.imm_data, 0x99u);
  EXPECT_TRUE(has_pattern(b.memory(77), 50, 1));
}

TEST_P(BuilderWrites, WriteInline) {
  const Built built = build(type());
  std::uint8_t here[40];
  fill(here, sizeof here, 1);
  ibv_wr_start(built.ex);
  next(built, 4, inline_flags());
  ibv_wr_rdma_write(built.ex, b.mr()->rkey, b.address(77));
  ibv_wr_set_inline_data(built.ex, here, sizeof here);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  await_success(a.send_cq(), "a built inline WRITE");
  marker(built);
  EXPECT_TRUE(has_pattern(b.memory(77), 40, 1));
}

class BuilderReads : public BuilderRig {};

TEST_F(BuilderReads, Read) {
  const Built built = build(IBV_QPT_RC);
  fill(b.memory(77), 5000, 1);
  ibv_wr_start(built.ex);
  next(built, 4);
  ibv_wr_rdma_read(built.ex, b.mr()->rkey, b.address(77));
  set_sge(built, 3, 5000);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  EXPECT_EQ(await_success(a.send_cq(), "a built READ").opcode, IBV_WC_RDMA_READ);
  EXPECT_TRUE(has_pattern(a.memory(3), 5000, 1));
}

TEST_F(BuilderReads, FetchAndAdd) {
  const Built built = build(IBV_QPT_RC);
  b.word(64) = 40;
  ibv_wr_start(built.ex);
  next(built, 4);
  ibv_wr_atomic_fetch_add(built.ex, b.mr()->rkey, b.address(64), 2);
  set_sge(built, 8, 8);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  EXPECT_EQ(await_success(a.send_cq(), "a built fetch-and-add").opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(a.word(8), 40u);
  EXPECT_EQ(b.word(64), 42u);
}

TEST_F(BuilderReads, CompareAndSwap) {
  const Built built = build(IBV_QPT_RC);
  b.word(64) = 40;
  ibv_wr_start(built.ex);
  next(built, 4);
  ibv_wr_atomic_cmp_swp(built.ex, b.mr()->rkey, b.address(64), 40, 7);
  set_sge(built, 8, 8);
  next(built, 5);
  ibv_wr_atomic_cmp_swp(built.ex, b.mr()->rkey, b.address(64), 40, 9);
  set_sge(built, 16, 8);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  EXPECT_EQ(await(a.send_cq(), 2, "built compare-and-swaps").size(), 2u);
  EXPECT_EQ(a.word(8), 40u);
  EXPECT_EQ(a.word(16), 7u);
  EXPECT_EQ(b.word(64), 7u);
}

TEST_F(BuilderReads, MixOperationsInOneList) {
  const Built built = build(IBV_QPT_RC);
  a.word(0) = 5;
  recv(built.b, {b.sge(4096, 64)});
  ibv_wr_start(built.ex);
  next(built, 1);
  ibv_wr_rdma_write(built.ex, b.mr()->rkey, b.address(64));
  set_sge(built, 0, 8);
  next(built, 2);
  ibv_wr_atomic_fetch_add(built.ex, b.mr()->rkey, b.address(64), 3);
  set_sge(built, 8, 8);
  next(built, 3);
  ibv_wr_rdma_read(built.ex, b.mr()->rkey, b.address(64));
  set_sge(built, 16, 8);
  next(built, 4);
  ibv_wr_send(built.ex);
  set_sge(built, 0, 8);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  EXPECT_THAT(ids(await(a.send_cq(), 4, "a WRITE, an atomic, a READ and a SEND")), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(a.word(8), 5u);
  EXPECT_EQ(a.word(16), 8u);
}

// ibv_create_qp_ex(3): creation fails when the QP has not all the operations asked for.
TEST_F(BuilderReads, OperationsThatTheTransportHasNotAreRefused) {
  for (const auto& [type, operations] : {std::pair{IBV_QPT_UD, std::uint64_t{IBV_QP_EX_WITH_RDMA_WRITE}},
                                         std::pair{IBV_QPT_UC, std::uint64_t{IBV_QP_EX_WITH_RDMA_READ}}}) {
    const ibv_qp_init_attr plain = init_attributes(a, type, {});
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = plain.send_cq;
    attr.recv_cq = plain.recv_cq;
    attr.cap = plain.cap;
    attr.qp_type = type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = a.pd();
    attr.send_ops_flags = operations;
    errno = 0;
    ibv_qp* qp = a.verbs().create_qp_ex(a.context(), &attr);
    EXPECT_EQ(qp, nullptr) << transport_name(type);
    EXPECT_THAT(errno, testing::AnyOf(EOPNOTSUPP, EINVAL));
    if (qp != nullptr) a.verbs().destroy_qp(qp);
  }
}

}  // namespace
}  // namespace verbscope::conformance
