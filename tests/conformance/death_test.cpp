// The death of a peer's process as the survivor sees it. InfiniBand Architecture Specification 1.3, volume 1, sections
// 9.7.6 (retries) and 11.2.4 (QPs of a process that ended are destroyed: nobody answers).
#include "tests/conformance/rig.hpp"
#include "tests/conformance/victim.hpp"

namespace verbscope::conformance {
namespace {

constexpr LinkOptions kTwoShortRetries{.timeout = 12, .retries = 2};  // 4.096 us * 2^12 = 17 ms

class Death : public Rig {
 protected:
  std::unique_ptr<Victim> victim = make_victim(a, b);
  ibv_qp* rc = a.make_qp(IBV_QPT_RC);
  ibv_qp* uc = a.make_qp(IBV_QPT_UC);
  ibv_qp* ud = a.make_qp(IBV_QPT_UD);
  ibv_ah* ah = a.make_ah(b);

  void SetUp() override { connect(); }
  void connect() {
    for (ibv_qp* qp : {rc, uc, ud}) {
      ASSERT_EQ(bring_up(a, qp, b, victim->address().qp(qp->qp_type), kTwoShortRetries), 0);
    }
    victim->connect(rc->qp_num, uc->qp_num);
  }
  Request request(ibv_wr_opcode opcode, std::uint64_t id) {
    return {.opcode = opcode,
            .sges = {a.sge(0, 8)},
            .id = id,
            .remote = victim->address().memory + 4096,
            .rkey = victim->address().rkey};
  }
  Request datagram(std::uint64_t id) {
    return {.sges = {a.sge(0, 8)}, .id = id, .ah = ah, .qpn = victim->address().ud};
  }
};

class DeathBefore : public Death, public testing::WithParamInterface<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(, DeathBefore,
                         testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                         IBV_WR_ATOMIC_CMP_AND_SWP),
                         [](const auto& which) { return std::string(opcode_name(which.param)); });

TEST_P(DeathBefore, IsFoundByTheRetries) {
  send(rc, request(GetParam(), 1));
  EXPECT_EQ(await_success(a.send_cq(), "a request to a peer that lives").wr_id, 1u);
  victim->die();
  EXPECT_EQ(post(rc, {request(GetParam(), 2), request(GetParam(), 3)}).error, 0);
  const std::vector<ibv_wc> ended = await(a.send_cq(), 2, "requests to a peer that died");
  EXPECT_THAT(ids(ended), testing::ElementsAre(2, 3));
  EXPECT_THAT(statuses(ended), testing::ElementsAre(IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR));
}

// Every request ends once, in order: those that were answered, the one that was not, and the rest flushed.
class DeathDuring : public Death, public testing::WithParamInterface<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(, DeathDuring,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD),
                         [](const auto& which) { return std::string(opcode_name(which.param)); });

TEST_P(DeathDuring, LeavesNoRequestWithoutAnEnd) {
  constexpr std::uint64_t kWindow = 8;
  constexpr std::uint64_t kBefore = 50;  // completions while the peer lives
  std::uint64_t posted = 0;
  for (; posted < kWindow; ++posted) send(rc, request(GetParam(), posted));
  for (std::uint64_t done = 0; done < kBefore; ++done) {
    ASSERT_EQ(await_success(a.send_cq(), "a request to a peer that lives").wr_id, done);
    send(rc, request(GetParam(), posted++));
  }
  victim->die();
  // The second of these at the latest is posted after it died and has no answer.
  const std::vector<ibv_wc> ended = await(a.send_cq(), posted - kBefore, "requests when the peer died");
  std::vector<std::uint64_t> expected;
  for (std::uint64_t id = kBefore; id < posted; ++id) expected.push_back(id);
  EXPECT_EQ(ids(ended), expected);
  const auto failed = std::ranges::find_if(ended, [](const ibv_wc& wc) { return wc.status != IBV_WC_SUCCESS; });
  if (failed == ended.end()) {  // all were answered before it died
    send(rc, request(GetParam(), posted));
    await_status(a.send_cq(), IBV_WC_RETRY_EXC_ERR, "a request after the death");
    return;
  }
  EXPECT_EQ(failed->status, IBV_WC_RETRY_EXC_ERR);
  for (auto behind = failed + 1; behind != ended.end(); ++behind) EXPECT_EQ(behind->status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Death, IsNotNoticedByUnreliableSenders) {
  victim->die();
  send(uc, request(IBV_WR_SEND, 1));
  EXPECT_EQ(await_success(a.send_cq(), "a SEND over UC to a peer that died").wr_id, 1u);
  send(uc, request(IBV_WR_RDMA_WRITE, 2));
  EXPECT_EQ(await_success(a.send_cq(), "a WRITE over UC to a peer that died").wr_id, 2u);
  send(ud, datagram(3));
  EXPECT_EQ(await_success(a.send_cq(), "a datagram to a peer that died").wr_id, 3u);
  EXPECT_EQ(state_of(a, uc), IBV_QPS_RTS);
  EXPECT_EQ(state_of(a, ud), IBV_QPS_RTS);
}

// A receiver is not told either: its RECVs stay until it gives up itself.
TEST_F(Death, LeavesPostedReceives) {
  recv(rc, {a.sge(0, 64)}, 7);
  victim->die();
  fabric().pass(std::chrono::milliseconds(100));
  EXPECT_TRUE(poll(a.recv_cq()).empty());
  EXPECT_EQ(state_of(a, rc), IBV_QPS_RTS);
  ASSERT_EQ(modify(a, rc, to_state(IBV_QPS_ERR)), 0);
  EXPECT_EQ(await_status(a.recv_cq(), IBV_WC_WR_FLUSH_ERR, "the RECV").wr_id, 7u);
}

TEST_F(Death, LeavesOtherConnections) {
  ibv_qp* left = a.make_qp(IBV_QPT_RC);
  ibv_qp* right = a.make_qp(IBV_QPT_RC);  // both on this side
  ASSERT_EQ(bring_up(a, left, a, right->qp_num), 0);
  ASSERT_EQ(bring_up(a, right, a, left->qp_num), 0);
  victim->die();
  send(rc, request(IBV_WR_RDMA_WRITE, 1));
  await_status(a.send_cq(), IBV_WC_RETRY_EXC_ERR, "a WRITE to a peer that died");
  recv(right, {a.sge(4096, 64)}, 5);
  send(left, {.sges = {a.sge(0, 8)}, .id = 2});
  EXPECT_EQ(await_success(a.recv_cq(), "a SEND between the survivor's own QPs").wr_id, 5u);
  EXPECT_EQ(await_success(a.send_cq(), "its completion").wr_id, 2u);
}

}  // namespace
}  // namespace verbscope::conformance
