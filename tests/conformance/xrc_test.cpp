// Extended reliable connections: requests name a shared receive queue of the target. InfiniBand Architecture
// Specification 1.3, volume 1, annex A14; ibv_open_xrcd(3), ibv_create_srq_ex(3), ibv_open_qp(3), ibv_post_send(3).
#include "tests/conformance/xrc.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

TEST_F(Xrc, SendsUseTheQueueThatTheyName) {
  ibv_cq* other_cq = b.make_cq(16);
  ibv_srq* first = make_queue(b, domain);
  ibv_srq* second = make_queue(b, domain, other_cq);
  const Pair pair = link();
  fill(a.memory(), 100, 1);
  fill(a.memory(4096), 100, 2);
  srq_recv(first, {b.sge(0, 128)}, 11);
  srq_recv(second, {b.sge(4096, 128)}, 22);
  send(pair.a, to(second, a.sge(4096, 100), 1));
  send(pair.a, to(first, a.sge(0, 100), 2));
  const ibv_wc of_second = await_success(other_cq, "a SEND to the second queue");
  EXPECT_EQ(of_second.wr_id, 22u);
  EXPECT_EQ(of_second.qp_num, pair.b->qp_num);
  EXPECT_EQ(of_second.byte_len, 100u);
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND to the first queue").wr_id, 11u);
  EXPECT_THAT(ids(await(a.send_cq(), 2, "both sent")), ElementsAre(1, 2));
  EXPECT_TRUE(has_pattern(b.memory(), 100, 1));
  EXPECT_TRUE(has_pattern(b.memory(4096), 100, 2));
}

TEST_F(Xrc, QueuesServeSeveralQps) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair first = link(), second = link();
  for (std::uint64_t id = 0; id < 2; ++id) srq_recv(srq, {b.sge(id * 64, 64)}, id);
  send(second.a, to(srq, a.sge(0, 8)));
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND of the second QP").qp_num, second.b->qp_num);
  send(first.a, to(srq, a.sge(0, 8)));
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND of the first QP").qp_num, first.b->qp_num);
}

TEST_F(Xrc, NumbersOfQueuesDiffer) {
  EXPECT_NE(number_of(make_queue(b, domain)), number_of(make_queue(b, domain)));
}

TEST_F(Xrc, CarriesLongMessages) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair pair = link();
  constexpr std::uint32_t kLength = 50'000;
  fill(a.memory(), kLength, 1);
  srq_recv(srq, {b.sge(0, kLength)}, 3);
  send(pair.a, to(srq, a.sge(0, kLength)));
  EXPECT_EQ(await_success(b.recv_cq(), "a long SEND").byte_len, kLength);
  EXPECT_TRUE(has_pattern(b.memory(), kLength, 1));
}

TEST_F(Xrc, CarriesImmediateData) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair pair = link();
  srq_recv(srq, {b.sge(0, 64)}, 3);
  srq_recv(srq, {b.sge(64, 64)}, 4);
  Request request = to(srq, a.sge(0, 8));
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.immediate = 0x1234;
  send(pair.a, request);
  ibv_wc wc = await_success(b.recv_cq(), "a SEND with immediate data");
  EXPECT_EQ(wc.wr_id, 3u);
  EXPECT_EQ(wc.imm_data, 0x1234u);
  request = with_queue(write_to(a.sge(0, 8), b, 8192), srq);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.immediate = 0x4321;
  send(pair.a, request);
  wc = await_success(b.recv_cq(), "a WRITE with immediate data");
  EXPECT_EQ(wc.wr_id, 4u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.imm_data, 0x4321u);
}

TEST_F(Xrc, WritesReadsAndAddsInMemory) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair pair = link();
  a.word(0) = 5;
  send(pair.a, with_queue(write_to(a.sge(0, 8), b, 128), srq));
  await_success(a.send_cq(), "a WRITE");
  send(pair.a, with_queue(fetch_add(a.sge(8, 8), b, 128, 7), srq));
  await_success(a.send_cq(), "a fetch-and-add");
  EXPECT_EQ(a.word(8), 5u);
  send(pair.a, with_queue(compare_swap(a.sge(16, 8), b, 128, 12, 40), srq));
  await_success(a.send_cq(), "a compare-and-swap");
  EXPECT_EQ(a.word(16), 12u);
  send(pair.a, with_queue(read_of(a.sge(24, 8), b, 128), srq));
  await_success(a.send_cq(), "a READ");
  EXPECT_EQ(a.word(24), 40u);
}

// The PD of the queue grants access to memory.
TEST_F(Xrc, AccessIsThatOfTheNamedQueue) {
  ibv_pd* pd = b.make_pd();
  ibv_srq* own = make_queue(b, domain);
  ibv_srq* other = make_queue(b, domain, nullptr, pd);
  const Pair pair = link();
  send(pair.a, with_queue(write_to(a.sge(0, 8), b, 128), own));
  await_success(a.send_cq(), "a WRITE to a region of the queue's PD");
  send(pair.a, with_queue(write_to(a.sge(0, 8), b, 128), other));
  await_status(a.send_cq(), IBV_WC_REM_ACCESS_ERR, "a WRITE to a region of another PD");
}

// READs that are under way keep their rights when a later request names a queue of another PD.
TEST_F(Xrc, ReadsAndSendsMayNameQueuesOfDifferentPds) {
  ibv_pd* pd = b.make_pd();
  ibv_mr* mr = b.make_mr(0, 65536, kAllAccess, pd);
  ibv_srq* own = make_queue(b, domain);
  ibv_srq* other = make_queue(b, domain, nullptr, pd);
  const Pair pair = link();
  constexpr std::uint32_t kLength = 30'000;
  fill(b.memory(131072), kLength, 4);
  srq_recv(other, {{b.address(0), 64, mr->lkey}}, 5);
  send(pair.a, with_queue(read_of(a.sge(131072, kLength), b, 131072), own));
  send(pair.a, to(other, a.sge(0, 8), 2));
  EXPECT_THAT(statuses(await(a.send_cq(), 2, "READ and SEND")), ElementsAre(IBV_WC_SUCCESS, IBV_WC_SUCCESS));
  EXPECT_TRUE(has_pattern(a.memory(131072), kLength, 4));
  EXPECT_EQ(await_success(b.recv_cq(), "the SEND").wr_id, 5u);
}

TEST_F(Xrc, UnknownQueuesAreInvalidRequests) {
  ibv_srq* basic = b.make_srq(4);
  ibv_srq* elsewhere = make_queue(b, open(b, -1, O_CREAT));
  ibv_srq* gone = make_queue(b, domain);
  const std::uint32_t number = number_of(gone);
  ASSERT_EQ(b.destroy(gone), 0);
  for (const std::uint32_t srqn : {number_of(basic), number_of(elsewhere), number, number + 0x1000, 0u}) {
    const Pair pair = link();
    send(pair.a, {.sges = {a.sge(0, 8)}, .srqn = srqn});
    await_status(a.send_cq(), IBV_WC_REM_INV_REQ_ERR, "a SEND to a queue outside of the domain");
    EXPECT_EQ(state_of(b, pair.b), IBV_QPS_ERR);
  }
}

TEST_F(Xrc, EmptyQueuesMakeTheSenderWait) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair pair = link({.min_rnr_timer = 1});
  send(pair.a, to(srq, a.sge(0, 8)));
  fabric().pass(std::chrono::milliseconds(2));
  EXPECT_TRUE(poll(a.send_cq()).empty());
  srq_recv(srq, {b.sge(0, 64)}, 6);
  await_success(a.send_cq(), "a SEND that waited for its queue");
  EXPECT_EQ(await_success(b.recv_cq(), "its RECV").wr_id, 6u);
}

TEST_F(Xrc, QueuesTellTheirLimit) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair pair = link();
  for (std::uint64_t id = 0; id < 3; ++id) srq_recv(srq, {b.sge(id * 64, 64)}, id);
  ibv_srq_attr attr{.max_wr = 0, .max_sge = 0, .srq_limit = 2};
  ASSERT_EQ(b.verbs().modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
  for (int i = 0; i < 2; ++i) send(pair.a, to(srq, a.sge(0, 8)));
  await(b.recv_cq(), 2, "two SENDs");
  ibv_async_event event{};
  ASSERT_EQ(b.verbs().get_async_event(b.context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq);
  b.verbs().ack_async_event(&event);
}

TEST_F(Xrc, QueuesKeepTheirReceivesWhenATargetFails) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair first = link(), second = link();
  srq_recv(srq, {b.sge(0, 64)}, 8);
  ASSERT_EQ(modify(b, first.b, to_state(IBV_QPS_ERR)), 0);
  send(second.a, to(srq, a.sge(0, 8)));
  EXPECT_EQ(await_success(b.recv_cq(), "a RECV posted before the other target failed").wr_id, 8u);
}

TEST_F(Xrc, TargetsMayBeResetAndUsedAgain) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair pair = link();
  srq_recv(srq, {b.sge(0, 64)}, 1);
  send(pair.a, to(srq, a.sge(0, 8)));
  await_success(a.send_cq(), "a SEND");
  await_success(b.recv_cq(), "its RECV");
  ASSERT_EQ(modify(a, pair.a, to_state(IBV_QPS_RESET)), 0);
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_RESET)), 0);
  connect(pair);
  srq_recv(srq, {b.sge(0, 64)}, 2);
  send(pair.a, to(srq, a.sge(0, 8)));
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND after the reset").wr_id, 2u);
}

TEST_F(Xrc, EachSidePostsWhatItHas) {
  ibv_srq* srq = make_queue(b, domain);
  const Pair pair = link();
  EXPECT_NE(post(pair.b, {to(srq, b.sge(0, 8))}).error, 0) << "a target does not send";
  EXPECT_NE(post_recv(pair.b, {b.sge(0, 8)}).error, 0) << "a target has no RECVs";
  EXPECT_NE(post_recv(pair.a, {a.sge(0, 8)}).error, 0) << "a sender has no RECVs";
}

TEST_F(Xrc, BuilderNamesTheQueue) {
  ibv_srq* first = make_queue(b, domain);
  ibv_srq* second = make_queue(b, domain);
  ibv_qp* qp = a.make_qp_ex(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND);
  const Pair pair{qp, make_target(b, domain)};
  connect(pair);
  ibv_qp_ex* ex = a.verbs().qp_to_qp_ex(qp);
  ASSERT_NE(ex, nullptr);
  srq_recv(first, {b.sge(0, 64)}, 1);
  srq_recv(second, {b.sge(64, 64)}, 2);
  ibv_wr_start(ex);
  for (ibv_srq* srq : {second, first}) {
    ex->wr_id = 7;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    ibv_wr_set_xrc_srqn(ex, number_of(srq));
    ibv_wr_set_sge(ex, a.mr()->lkey, a.address(0), 8);
  }
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_THAT(ids(await(b.recv_cq(), 2, "SENDs to both queues")), ElementsAre(2, 1));
}

// The kernel's table for both QP types (drivers/infiniband/core/verbs.c, qp_state_table): only a target answers READs
// and has an RNR timer, and only a sender has retries. Those of the other side are ignored (uverbs_cmd.c,
// modify_qp_mask).
TEST_F(Xrc, QpsHaveTheAttributesOfTheirSide) {
  ibv_qp* sender = a.make_qp(IBV_QPT_XRC_SEND);
  ibv_qp* target = make_target(b, domain);
  const auto with = [](Step step, int mask) {
    step.mask |= mask;
    return step;
  };
  const auto without = [](Step step, int mask) {
    step.mask &= ~mask;
    return step;
  };
  ASSERT_EQ(modify(a, sender, to_init(a, IBV_QPT_XRC_SEND)), 0);
  ASSERT_EQ(modify(b, target, to_init(b, IBV_QPT_XRC_RECV)), 0);
  const Step sender_rtr = to_rtr(a, IBV_QPT_XRC_SEND, b, target->qp_num);
  const Step target_rtr = to_rtr(b, IBV_QPT_XRC_RECV, a, sender->qp_num);
  EXPECT_EQ(modify(b, target, without(target_rtr, IBV_QP_MIN_RNR_TIMER)), EINVAL);
  EXPECT_EQ(modify(b, target, without(target_rtr, IBV_QP_MAX_DEST_RD_ATOMIC)), EINVAL);
  EXPECT_EQ(modify(a, sender, with(sender_rtr, IBV_QP_QKEY)), EINVAL);
  ASSERT_EQ(modify(a, sender, with(sender_rtr, IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC)), 0);
  ASSERT_EQ(modify(b, target, target_rtr), 0);
  const Step sender_rts = to_rts(IBV_QPT_XRC_SEND);
  const Step target_rts = to_rts(IBV_QPT_XRC_RECV);
  EXPECT_EQ(modify(a, sender, without(sender_rts, IBV_QP_RETRY_CNT)), EINVAL);
  EXPECT_EQ(modify(b, target, without(target_rts, IBV_QP_TIMEOUT)), EINVAL);
  EXPECT_EQ(modify(a, sender, sender_rts), 0);
  EXPECT_EQ(modify(b, target, with(target_rts, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)), 0);
}

TEST_F(Xrc, TargetsNeedADomain) {
  ibv_qp_init_attr plain = init_attributes(b, IBV_QPT_XRC_RECV, {});
  errno = 0;
  EXPECT_EQ(b.verbs().create_qp(b.pd(), &plain), nullptr);
  EXPECT_NE(errno, 0);
  ibv_qp_init_attr_ex attr = target_of(domain);
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = b.pd();
  EXPECT_EQ(b.verbs().create_qp_ex(b.context(), &attr), nullptr);
}

TEST_F(Xrc, QueuesNeedDomainAndCq) {
  for (const std::uint32_t left_out : {IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_PD}) {
    ibv_srq_init_attr_ex attr = queue_of(b, domain, nullptr, nullptr);
    attr.comp_mask &= ~left_out;
    errno = 0;
    EXPECT_EQ(ibv_create_srq_ex(b.context(), &attr), nullptr) << left_out;
    EXPECT_NE(errno, 0);
  }
}

TEST_F(Xrc, KeepTheirObjectsBusy) {
  ibv_cq* cq = b.make_cq(16);
  ibv_pd* pd = b.make_pd();
  ibv_srq* srq = make_queue(b, domain, cq, pd);
  EXPECT_EQ(b.destroy(domain), EBUSY);
  EXPECT_EQ(b.destroy(cq), EBUSY);
  EXPECT_EQ(b.destroy(pd), EBUSY);
  EXPECT_EQ(b.destroy(srq), 0);
  ibv_qp* target = make_target(b, domain);
  EXPECT_EQ(b.destroy(domain), EBUSY);
  EXPECT_EQ(b.destroy(target), 0);
  EXPECT_EQ(b.destroy(cq), 0);
  EXPECT_EQ(b.destroy(pd), 0);
  EXPECT_EQ(b.destroy(domain), 0);
}

}  // namespace
}  // namespace verbscope::conformance
