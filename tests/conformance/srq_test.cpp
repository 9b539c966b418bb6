// Shared receive queues. InfiniBand Architecture Specification 1.3, volume 1, section 10.2.9; ibv_create_srq(3),
// ibv_post_srq_recv(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

class Srq : public Rig {
 protected:
  // A pair whose b receives from `srq`.
  Pair connect_to(ibv_srq* srq, ibv_qp_type type = IBV_QPT_RC, const LinkOptions& options = {}) {
    QpAsk ask;
    ask.srq = srq;
    return connect(type, options, {}, ask);
  }
};

TEST_F(Srq, HasTheDepthAskedForAtLeast) {
  ibv_srq_attr attr{};
  ASSERT_EQ(b.verbs().query_srq(b.make_srq(10, 2), &attr), 0);
  EXPECT_GE(attr.max_wr, 10u);
  EXPECT_GE(attr.max_sge, 2u);
  EXPECT_EQ(attr.srq_limit, 0u);
}

TEST_F(Srq, OverTheDevicesLimitsIsRefused) {
  for (const bool depth : {true, false}) {
    ibv_srq_init_attr attr{};
    const ibv_device_attr& device = b.device().attributes();
    attr.attr.max_wr = depth ? static_cast<std::uint32_t>(device.max_srq_wr) + 1 : 4;
    attr.attr.max_sge = depth ? 1 : static_cast<std::uint32_t>(device.max_srq_sge) + 1;
    errno = 0;
    ibv_srq* srq = b.verbs().create_srq(b.pd(), &attr);
    EXPECT_EQ(srq, nullptr);
    EXPECT_EQ(errno, EINVAL);
    if (srq != nullptr) b.verbs().destroy_srq(srq);
  }
}

TEST_F(Srq, ServesAQpInTheOrderOfPosting) {
  ibv_srq* srq = b.make_srq(16);
  const Pair pair = connect_to(srq);
  for (std::uint64_t id = 0; id < 6; ++id) srq_recv(srq, {b.sge(id * 64, 64)}, id);
  for (std::uint64_t id = 0; id < 6; ++id) {
    a.word(id * 8) = id + 100;
    send(pair.a, {.sges = {a.sge(id * 8, 8)}});
  }
  const std::vector<ibv_wc> received = await(b.recv_cq(), 6, "messages through an SRQ");
  EXPECT_THAT(ids(received), ElementsAre(0, 1, 2, 3, 4, 5));
  for (const ibv_wc& wc : received) {
    EXPECT_EQ(wc.qp_num, pair.b->qp_num);
    EXPECT_EQ(wc.byte_len, 8u);
  }
  for (std::uint64_t id = 0; id < 6; ++id) EXPECT_EQ(b.word(id * 64), id + 100);
}

// The completion names the QP that the message came to, whichever RECV it took.
TEST_F(Srq, IsSharedByItsQps) {
  ibv_srq* srq = b.make_srq(16);
  const Pair first = connect_to(srq);
  const Pair second = connect_to(srq);
  for (std::uint64_t id = 0; id < 4; ++id) srq_recv(srq, {b.sge(id * 64, 64)}, id);
  std::vector<std::uint32_t> expected;
  for (int i = 0; i < 2; ++i) {
    for (const Pair& pair : {second, first}) {
      send(pair.a, {.sges = {a.sge(0, 8)}});
      await_success(a.send_cq(), "a SEND to the SRQ");
      expected.push_back(pair.b->qp_num);
    }
  }
  const std::vector<ibv_wc> received = await(b.recv_cq(), 4, "messages of two QPs");
  EXPECT_THAT(ids(received), ElementsAre(0, 1, 2, 3));
  std::vector<std::uint32_t> numbers;
  for (const ibv_wc& wc : received) numbers.push_back(wc.qp_num);
  EXPECT_EQ(numbers, expected);
}

TEST_F(Srq, EmptyMakesASenderWait) {
  ibv_srq* srq = b.make_srq(16);
  const Pair pair = connect_to(srq, IBV_QPT_RC, {.rnr_retries = 7, .min_rnr_timer = 1});
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 5});
  fabric().pass(std::chrono::milliseconds(2));
  EXPECT_TRUE(poll(a.send_cq()).empty());
  srq_recv(srq, {b.sge(0, 64)}, 6);
  EXPECT_EQ(await_success(a.send_cq(), "a SEND that waited for the SRQ").wr_id, 5u);
  EXPECT_EQ(await_success(b.recv_cq(), "its RECV").wr_id, 6u);
}

TEST_F(Srq, EmptyIsAnErrorForASenderWithoutRetries) {
  const Pair pair = connect_to(b.make_srq(16), IBV_QPT_RC, {.rnr_retries = 0});
  send(pair.a, {.sges = {a.sge(0, 8)}});
  await_status(a.send_cq(), IBV_WC_RNR_RETRY_EXC_ERR, "a SEND to an empty SRQ");
}

TEST_F(Srq, FullRefusesAndTakesAgain) {
  ibv_srq* srq = b.make_srq(4);
  const Pair pair = connect_to(srq);
  ibv_srq_attr attr{};
  ASSERT_EQ(b.verbs().query_srq(srq, &attr), 0);
  std::uint32_t taken = 0;
  Posted last;
  while (last.error == 0 && taken < 100'000) {
    last = post_srq_recv(srq, {b.sge(0, 64)}, taken);
    if (last.error == 0) ++taken;
  }
  EXPECT_EQ(last.error, ENOMEM);
  EXPECT_EQ(last.bad, 0);
  EXPECT_GE(taken, attr.max_wr);
  send(pair.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND to the full SRQ").wr_id, 0u);
  EXPECT_EQ(post_srq_recv(srq, {b.sge(0, 64)}).error, 0);
}

TEST_F(Srq, RefusesTooManySges) {
  ibv_srq* srq = b.make_srq(4, 2);
  ibv_srq_attr attr{};
  ASSERT_EQ(b.verbs().query_srq(srq, &attr), 0);
  const std::vector<ibv_sge> sges(attr.max_sge + 1, b.sge(0, 8));
  const Posted posted = post_srq_recv(srq, sges);
  EXPECT_THAT(posted.error, testing::AnyOf(EINVAL, ENOMEM));
  EXPECT_EQ(posted.bad, 0);
}

TEST_F(Srq, ScattersOverSeveralPieces) {
  ibv_srq* srq = b.make_srq(4, 3);
  const Pair pair = connect_to(srq);
  fill(a.memory(), 100, 1);
  srq_recv(srq, {b.sge(0, 10), b.sge(4096, 80), b.sge(8192, 64)});
  send(pair.a, {.sges = {a.sge(0, 100)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a scattered message").byte_len, 100u);
  EXPECT_TRUE(has_pattern(b.memory(0), 10, 1));
  EXPECT_TRUE(has_pattern(b.memory(4096), 80, 1, 10));
  EXPECT_TRUE(has_pattern(b.memory(8192), 10, 1, 90));
}

// ibv_post_recv(3), NOTES: such a QP's own receive queue is not used.
TEST_F(Srq, ItsQpsRefuseReceivesOfTheirOwn) {
  const Pair pair = connect_to(b.make_srq(4));
  EXPECT_EQ(post_recv(pair.b, {b.sge(0, 64)}).error, EINVAL);
}

TEST_F(Srq, IsBusyWhileAQpUsesIt) {
  ibv_srq* srq = b.make_srq(4);
  const Pair pair = connect_to(srq);
  EXPECT_EQ(b.destroy(srq), EBUSY);
  srq_recv(srq, {b.sge(0, 64)}, 3);
  send(pair.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "the SRQ works on").wr_id, 3u);
  EXPECT_EQ(b.destroy(pair.b), 0);
  EXPECT_EQ(b.destroy(srq), 0);
}

// RECVs that one QP did not use are there for the others.
TEST_F(Srq, KeepsItsReceivesWhenAQpGoes) {
  ibv_srq* srq = b.make_srq(4);
  const Pair first = connect_to(srq);
  const Pair second = connect_to(srq);
  srq_recv(srq, {b.sge(0, 64)}, 8);
  EXPECT_EQ(b.destroy(first.b), 0);
  send(second.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a RECV posted before the other QP went").wr_id, 8u);
}

// Section 10.2.9: requests of an SRQ are not flushed when one of its QPs fails.
TEST_F(Srq, KeepsItsReceivesWhenAQpFails) {
  ibv_srq* srq = b.make_srq(4);
  const Pair first = connect_to(srq);
  const Pair second = connect_to(srq);
  srq_recv(srq, {b.sge(0, 64)}, 8);
  ASSERT_EQ(modify(b, first.b, to_state(IBV_QPS_ERR)), 0);
  send(second.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a RECV posted before the other QP failed").wr_id, 8u);
  EXPECT_TRUE(poll(b.recv_cq()).empty());
}

TEST_F(Srq, ServesDatagramsWithTheirGrh) {
  ibv_srq* srq = b.make_srq(4);
  const Pair pair = connect_to(srq, IBV_QPT_UD);
  fill(a.memory(), 20, 1);
  srq_recv(srq, {b.sge(0, kGrhBytes + 20)}, 2);
  send(pair.a, {.sges = {a.sge(0, 20)}});
  const ibv_wc wc = await_success(b.recv_cq(), "a datagram through an SRQ");
  EXPECT_EQ(wc.byte_len, 60u);
  EXPECT_EQ(wc.src_qp, pair.a->qp_num);
  EXPECT_TRUE(has_pattern(b.memory(kGrhBytes), 20, 1));
}

TEST_F(Srq, IsConsumedByWritesWithImmediate) {
  ibv_srq* srq = b.make_srq(4);
  const Pair pair = connect_to(srq);
  srq_recv(srq, {b.sge(0, 64)}, 4);
  Request request = write_to(a.sge(0, 8), b, 4096);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.immediate = 11;
  send(pair.a, request);
  const ibv_wc wc = await_success(b.recv_cq(), "a WRITE with immediate data");
  EXPECT_EQ(wc.wr_id, 4u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.imm_data, 11u);
}

// A long message takes one RECV for all of its packets.
TEST_F(Srq, ServesLongMessagesOfTwoQpsAtOnce) {
  ibv_srq* srq = b.make_srq(4);
  const Pair first = connect_to(srq);
  const Pair second = connect_to(srq);
  constexpr std::uint32_t kLength = 50'000;
  fill(a.memory(0), kLength, 1);
  fill(a.memory(65536), kLength, 2);
  srq_recv(srq, {b.sge(0, kLength)}, 0);
  srq_recv(srq, {b.sge(65536, kLength)}, 1);
  send(first.a, {.sges = {a.sge(0, kLength)}});
  send(second.a, {.sges = {a.sge(65536, kLength)}});
  for (const ibv_wc& wc : await(b.recv_cq(), 2, "long messages of two QPs")) {
    EXPECT_EQ(wc.byte_len, kLength);
    EXPECT_TRUE(has_pattern(b.memory(wc.wr_id * 65536), kLength, wc.qp_num == first.b->qp_num ? 1 : 2));
  }
}

// ibv_create_qp(3): with an SRQ, max_recv_wr and max_recv_sge are ignored.
TEST_F(Srq, MakesTheReceiveDepthOfAQpIgnored) {
  QpAsk ask;
  ask.srq = b.make_srq(4);
  ask.cap.max_recv_wr = 0;
  ask.cap.max_recv_sge = 0;
  const Pair pair = connect(IBV_QPT_RC, {}, {}, ask);
  srq_recv(ask.srq, {b.sge(0, 64)}, 5);
  send(pair.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND to a QP without a receive queue").wr_id, 5u);
}

}  // namespace
}  // namespace verbscope::conformance
