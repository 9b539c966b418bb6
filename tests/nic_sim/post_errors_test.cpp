// ibv_post_send and ibv_post_recv return the errors of their manual pages. Other invalid requests fail later with a
// completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class PostErrors : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, PostErrors, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(PostErrors, InlineDataOverTheLimitIsRefused) {
  Pair pair(GetParam());  // 256 bytes of inline data
  pair.b.post_recv(pair.qb, kIn, 512);
  EXPECT_EQ(pair.send({.length = 257, .flags = kInline}), ENOMEM);
  EXPECT_EQ(pair.send({.length = 256, .flags = kInline}), 0);
}

TEST_P(PostErrors, MoreSgesThanQpAllowsAreRefused) {
  Pair pair(GetParam());  // four SGEs in each direction
  std::vector<ibv_sge> pieces(5, pair.a.sge(0, 8));
  ibv_send_wr send{};
  send.sg_list = pieces.data();
  send.num_sge = 5;
  send.opcode = IBV_WR_SEND;
  send.wr.ud.ah = pair.ah;
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(ibv_post_send(pair.qa, &send, &bad_send), EINVAL);
  EXPECT_EQ(bad_send, &send);
  ibv_recv_wr recv{.wr_id = 0, .next = nullptr, .sg_list = pieces.data(), .num_sge = 5};
  ibv_recv_wr* bad_recv = nullptr;
  EXPECT_EQ(ibv_post_recv(pair.qa, &recv, &bad_recv), EINVAL);
  EXPECT_EQ(bad_recv, &recv);
}

TEST_P(PostErrors, SgesDoNotMixOnQpCreatedWithoutSges) {
  Pair pair(GetParam(),
            {.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 0, .max_recv_sge = 1, .max_inline_data = 0}});
  pair.b.post_recvs(pair.qb, kIn, 128, 4);
  fill(pair.a.memory(0), 64, 1);
  fill(pair.a.memory(64), 64, 2);
  const int error = pair.send({.offset = 0, .length = 64});
  if (error != 0) {  // refusing is also correct
    EXPECT_EQ(error, EINVAL);
    return;
  }
  ASSERT_EQ(pair.send({.offset = 64, .length = 64}), 0);
  pair.pass(kLong);
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn + grh_room(GetParam())), 64, 1));
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn + 128 + grh_room(GetParam())), 64, 2));
}

TEST_P(PostErrors, UnsupportedOpcodesAreRefused) {
  Pair pair(GetParam());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_TSO;
  wr.wr.ud.ah = pair.ah;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(pair.qa, &wr, &bad), EINVAL);
}

TEST_P(PostErrors, QpOutsideRtsRefusesPosts) {
  TwoNodes nodes;
  ibv_qp* qp = nodes.a.make_qp(GetParam());
  ibv_ah* ah = nodes.a.make_ah(1);
  EXPECT_EQ(nodes.a.post(qp, {.length = 8}, ah, 0x100), EINVAL) << "RESET";
  EXPECT_EQ(nodes.a.post_recv(qp, 0, 64), EINVAL) << "RESET";
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  ASSERT_EQ(nodes.a.provider().modify_qp(qp, &attr,
                                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                             (GetParam() == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
            0);
  EXPECT_EQ(nodes.a.post(qp, {.length = 8}, ah, 0x100), EINVAL) << "INIT";
  EXPECT_EQ(nodes.a.post_recv(qp, 0, 64), 0) << "INIT takes RECVs";
}

TEST_P(PostErrors, AWrongLocalKeyFailsTheRequestAndTheQp) {
  Pair pair(GetParam());
  pair.b.post_recvs(pair.qb, kIn, 128, 4);
  pair.a.post_recvs(pair.qa, kIn, 128, 2);
  ibv_sge piece = pair.a.sge(0, 64);
  piece.lkey += 1;
  ibv_send_wr wr{};
  wr.wr_id = 5;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {.ah = pair.ah, .remote_qpn = pair.qb->qp_num, .remote_qkey = 0x1111};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(pair.qa, &wr, &bad), 0);  // the adapter detects the error, not the call
  ASSERT_EQ(pair.send({.length = 8, .id = 6}), 0);
  pair.pass(kLong);
  const auto sent = pair.a.poll_sends();
  EXPECT_THAT(ids(sent), ElementsAre(5, 6));
  EXPECT_THAT(statuses(sent), ElementsAre(IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_THAT(statuses(pair.a.poll_recvs()), ElementsAre(IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(pair.qa->state, IBV_QPS_ERR);
  EXPECT_THAT(pair.b.poll_recvs(), IsEmpty());
}

TEST_P(PostErrors, APieceThatEndsOutsideItsRegionFailsTheRequest) {
  Pair pair(GetParam());
  pair.b.post_recv(pair.qb, kIn, 128);
  ASSERT_EQ(pair.send({.offset = TestNode::kMemory - 63, .length = 64}), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_LOC_PROT_ERR));
}

TEST_P(PostErrors, APieceThatEndsWithItsRegionIsFine) {
  Pair pair(GetParam());
  pair.b.post_recv(pair.qb, TestNode::kMemory - 128, 128);
  ASSERT_EQ(pair.send({.offset = TestNode::kMemory - 64, .length = 64}), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_THAT(statuses(pair.b.poll_recvs()), ElementsAre(IBV_WC_SUCCESS));
}

TEST_P(PostErrors, DeregisteredRegionIsWrongKey) {
  Pair pair(GetParam());
  std::vector<std::uint8_t> memory(64);
  ibv_mr* mr = pair.a.provider().reg_mr(pair.a.pd(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  ibv_sge piece{reinterpret_cast<std::uint64_t>(memory.data()), 64, mr->lkey};
  ASSERT_EQ(pair.a.provider().dereg_mr(mr), 0);
  ibv_send_wr wr{};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = kSignaled;
  wr.wr.ud = {.ah = pair.ah, .remote_qpn = pair.qb->qp_num, .remote_qkey = 0x1111};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(pair.qa, &wr, &bad), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_LOC_PROT_ERR));
}

TEST_P(PostErrors, AReceiveBufferThatMayNotBeWrittenFailsTheReceiver) {
  Pair pair(GetParam());
  ibv_mr* mr = pair.b.provider().reg_mr(pair.b.pd(), pair.b.memory(), 4096, 0);  // read-only
  ibv_sge piece{reinterpret_cast<std::uint64_t>(pair.b.memory()), 256, mr->lkey};
  ibv_recv_wr recv{.wr_id = 9, .next = nullptr, .sg_list = &piece, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pair.qb, &recv, &bad), 0);
  ASSERT_EQ(pair.send({.length = 8}), 0);
  pair.pass(kLong);
  const auto received = pair.b.poll_recvs();
  EXPECT_THAT(statuses(received), ElementsAre(IBV_WC_LOC_PROT_ERR));
  EXPECT_EQ(pair.qb->state, IBV_QPS_ERR);
  // Reliable transport: the sender also gets an error (InfiniBand Architecture Specification 1.3, volume 1, section
  // 9.7.5.2.5).
  EXPECT_THAT(statuses(pair.a.poll_sends()),
              ElementsAre(GetParam() == IBV_QPT_RC ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS));
  EXPECT_EQ(pair.b.provider().dereg_mr(mr), 0);
}

// The port's MTU limits a datagram: "Local Length Error", InfiniBand Architecture Specification 1.3, volume 1, section
// 11.6.2.
TEST(UdPost, AMessageOverTheMtuFails) {
  Pair pair(IBV_QPT_UD);
  pair.b.post_recv(pair.qb, kIn, 16 * 1024);
  ASSERT_EQ(pair.send({.length = 4096, .id = 1}), 0);
  pair.pass(kLong);
  const int error = pair.send({.length = 4097, .id = 2});
  pair.pass(kLong);
  if (error == 0) {
    EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS, IBV_WC_LOC_LEN_ERR));
  } else {
    EXPECT_EQ(error, EINVAL);
  }
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(1));
}

TEST(UdPost, ARequestWithoutAnAddressHandleIsRefused) {
  Pair pair(IBV_QPT_UD);
  EXPECT_EQ(pair.a.post(pair.qa, {.length = 8}, nullptr, pair.qb->qp_num), EINVAL);
}

}  // namespace
}  // namespace verbscope::test
