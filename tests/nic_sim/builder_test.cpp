// The ibv_wr_* interface: a post is complete or has no effect, and a QP has only the requested operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Pair built_pair(ibv_qp_type type) {
  QpOptions options;
  options.builder = true;
  return Pair(type, options);
}

// The ids of a's requests that have completed after a while.
std::vector<std::uint64_t> completed(Pair& pair) {
  pair.pass(kLong);
  return ids(pair.a.poll_sends());
}

void send_one(Pair& pair, std::uint64_t id, std::uint32_t length = 8) {
  ibv_qp_ex* const qp = pair.builder();
  const ibv_sge sge = pair.a.sge(0, length);
  qp->wr_id = id;
  qp->wr_flags = kSignaled;
  ibv_wr_send(qp);
  ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
}

TEST(Builder, InlineDataAreCopiedByTheSetter) {
  Pair pair = built_pair(IBV_QPT_RC);
  pair.b.post_recv(pair.qb, kIn, 64);
  ibv_qp_ex* const qp = pair.builder();
  fill(pair.a.memory(), 32, 3);
  ibv_wr_start(qp);
  qp->wr_flags = 0;
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, pair.a.memory(), 32);
  fill(pair.a.memory(), 32, 4);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  pair.pass(kLong);
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn), 32, 3));
}

TEST(Builder, AbortPostsNothing) {
  Pair pair = built_pair(IBV_QPT_RC);
  pair.b.post_recvs(pair.qb, kIn, 64, 4);
  ibv_qp_ex* const qp = pair.builder();
  ibv_wr_start(qp);
  send_one(pair, 1);
  ibv_wr_abort(qp);
  EXPECT_THAT(completed(pair), IsEmpty());
  EXPECT_EQ(pair.cluster.pcie_counts(0).mmio_doorbells + pair.cluster.pcie_counts(0).mmio_wc_lines, 0u);
  ibv_wr_start(qp);
  send_one(pair, 2);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_THAT(completed(pair), ElementsAre(2));
}

TEST(Builder, EmptyPostRingsNoDoorbell) {
  Pair pair = built_pair(IBV_QPT_RC);
  ibv_wr_start(pair.builder());
  EXPECT_EQ(ibv_wr_complete(pair.builder()), 0);
  EXPECT_EQ(pair.cluster.pcie_counts(0).mmio_doorbells, 0u);
}

TEST(Builder, PostBeyondQueueDepthPostsNothing) {
  Pair pair = built_pair(IBV_QPT_RC);
  pair.b.post_recvs(pair.qb, kIn, 64, 64);
  ibv_qp_ex* const qp = pair.builder();
  ibv_wr_start(qp);
  send_one(pair, 100);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  ibv_wr_start(qp);
  for (std::uint64_t i = 0; i < 64; ++i) send_one(pair, i);  // only 63 places are free
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  ibv_wr_start(qp);
  for (std::uint64_t i = 0; i < 65; ++i) send_one(pair, i);
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  EXPECT_THAT(completed(pair), ElementsAre(100));
  ibv_wr_start(qp);
  for (std::uint64_t i = 0; i < 63; ++i) send_one(pair, i);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(completed(pair).size(), 63u);
}

TEST(Builder, InvalidRequestFailsWholePost) {
  Pair pair = built_pair(IBV_QPT_RC);
  pair.b.post_recvs(pair.qb, kIn, 64, 4);
  ibv_qp_ex* const qp = pair.builder();
  std::array<ibv_sge, 5> five{};
  const auto fails = [&](auto&& wrong) {
    ibv_wr_start(qp);
    send_one(pair, 1);
    wrong();
    send_one(pair, 2);
    return ibv_wr_complete(qp);
  };
  EXPECT_EQ(fails([&] {
              ibv_wr_send(qp);
              ibv_wr_set_inline_data(qp, pair.a.memory(), 257);
            }),
            ENOMEM);
  EXPECT_EQ(fails([&] {
              ibv_wr_send(qp);
              ibv_wr_set_sge_list(qp, five.size(), five.data());
            }),
            EINVAL);
  EXPECT_EQ(fails([&] {  // an atomic must have 8 bytes
              ibv_wr_atomic_fetch_add(qp, pair.b.mr()->rkey, 0, 1);
              ibv_wr_set_sge(qp, pair.a.mr()->lkey, pair.a.sge(0, 4).addr, 4);
            }),
            EINVAL);
  ibv_wr_start(qp);
  ibv_wr_set_sge_list(qp, 1, five.data());  // without a request
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  EXPECT_THAT(completed(pair), IsEmpty());
}

TEST(Builder, DatagramWithoutAddressIsRefused) {
  Pair pair = built_pair(IBV_QPT_UD);
  ibv_wr_start(pair.builder());
  send_one(pair, 1);
  EXPECT_EQ(ibv_wr_complete(pair.builder()), EINVAL);
}

TEST(Builder, PostOnUnconnectedQpIsRefused) {
  QpOptions options;
  options.builder = true;
  TwoNodes nodes;
  ibv_qp_ex* const qp = nodes.a.provider().qp_to_qp_ex(nodes.a.make_qp(IBV_QPT_RC, options));
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
}

struct Creation : TwoNodes {
  ibv_qp* create(ibv_qp_type type, std::uint32_t mask, std::uint64_t operations) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = a.send_cq();
    attr.recv_cq = a.recv_cq();
    attr.cap = QpOptions{}.cap;
    attr.qp_type = type;
    attr.comp_mask = mask;
    attr.pd = a.pd();
    attr.send_ops_flags = operations;
    errno = 0;
    return a.provider().create_qp_ex(a.context(), &attr);
  }
};

constexpr std::uint32_t kPd = IBV_QP_INIT_ATTR_PD;
constexpr std::uint32_t kOperations = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

TEST(BuilderCreation, SetsOnlyRequestedOperations) {
  Creation nodes;
  ibv_qp* const qp =
      nodes.create(IBV_QPT_RC, kPd | kOperations, IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
  ASSERT_NE(qp, nullptr);
  const ibv_qp_ex* const builder = nodes.a.provider().qp_to_qp_ex(qp);
  EXPECT_EQ(builder->qp_base.qp_num, qp->qp_num);
  EXPECT_NE(builder->wr_rdma_read, nullptr);
  EXPECT_NE(builder->wr_atomic_fetch_add, nullptr);
  EXPECT_EQ(builder->wr_atomic_cmp_swp, nullptr);
  EXPECT_EQ(builder->wr_send, nullptr);
  EXPECT_EQ(builder->wr_send_imm, nullptr);
  EXPECT_EQ(builder->wr_rdma_write, nullptr);
  EXPECT_EQ(builder->wr_rdma_write_imm, nullptr);
  EXPECT_EQ(builder->wr_set_ud_addr, nullptr);
  EXPECT_EQ(builder->wr_bind_mw, nullptr);
  nodes.a.destroy(qp);
}

TEST(BuilderCreation, QpWithoutOperationsHasNoBuilder) {
  Creation nodes;
  ibv_qp* const qp = nodes.create(IBV_QPT_RC, kPd, 0);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(nodes.a.provider().qp_to_qp_ex(qp), nullptr);
  nodes.a.destroy(qp);
}

TEST(BuilderCreation, RefusesUnsupportedOperations) {
  Creation nodes;
  EXPECT_EQ(nodes.create(IBV_QPT_UD, kPd | kOperations, IBV_QP_EX_WITH_RDMA_WRITE), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(nodes.create(IBV_QPT_UD, kPd | kOperations, IBV_QP_EX_WITH_BIND_MW), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(nodes.create(IBV_QPT_UC, kPd | kOperations, IBV_QP_EX_WITH_RDMA_READ), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(nodes.create(IBV_QPT_RC, kPd | kOperations, IBV_QP_EX_WITH_TSO), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(nodes.create(IBV_QPT_RC, kPd | IBV_QP_INIT_ATTR_RX_HASH, 0), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(nodes.create(IBV_QPT_RC, kOperations, IBV_QP_EX_WITH_SEND), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbscope::test
