// Receivers that are not ready, and peers that are not there. InfiniBand Architecture Specification 1.3, volume 1,
// sections 9.7.5.2.8 (RNR NAK), 9.7.6 (timeouts and retries) and 11.6.2 (completion statuses).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

class NotReady : public Rig {};

TEST_F(NotReady, WithoutRetriesIsAnError) {
  const Pair pair = connect(IBV_QPT_RC, {.rnr_retries = 0});
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 5});
  EXPECT_EQ(await_status(a.send_cq(), IBV_WC_RNR_RETRY_EXC_ERR, "a SEND without RECV").wr_id, 5u);
  await_until([&] { return state_of(a, pair.a) == IBV_QPS_ERR; }, "the sender's QP to fail");
}

TEST_F(NotReady, AfterSomeRetriesIsAnError) {
  const Pair pair = connect(IBV_QPT_RC, {.rnr_retries = 3, .min_rnr_timer = 1});
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 5});
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 6});
  const std::vector<ibv_wc> ended = await(a.send_cq(), 2, "SENDs without RECV");
  EXPECT_THAT(ids(ended), ElementsAre(5, 6));
  EXPECT_THAT(statuses(ended), ElementsAre(IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR));
}

// The value 7 retries for ever.
TEST_F(NotReady, IsWaitedForWithoutLimit) {
  const Pair pair = connect(IBV_QPT_RC, {.rnr_retries = 7, .min_rnr_timer = 1});
  fill(a.memory(), 100, 1);
  send(pair.a, {.sges = {a.sge(0, 100)}, .id = 5});
  fabric().pass(std::chrono::milliseconds(5));  // many times 10 us
  EXPECT_TRUE(poll(a.send_cq()).empty());
  recv(pair.b, {b.sge(0, 100)}, 6);
  EXPECT_EQ(await_success(a.send_cq(), "a SEND that found its RECV late").wr_id, 5u);
  EXPECT_EQ(await_success(b.recv_cq(), "a RECV posted late").wr_id, 6u);
  EXPECT_TRUE(has_pattern(b.memory(), 100, 1));
}

TEST_F(NotReady, KeepsTheOrderOfWhatWaits) {
  const Pair pair = connect(IBV_QPT_RC);
  for (std::uint64_t id = 0; id < 6; ++id) {
    a.word(id * 8) = id + 100;
    send(pair.a, {.sges = {a.sge(id * 8, 8)}, .id = id});
  }
  for (std::uint64_t id = 0; id < 6; ++id) recv(pair.b, {b.sge(id * 8, 8)}, id);
  EXPECT_THAT(ids(await(a.send_cq(), 6, "SENDs that waited")), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ids(await(b.recv_cq(), 6, "their RECVs")), ElementsAre(0, 1, 2, 3, 4, 5));
  for (std::uint64_t id = 0; id < 6; ++id) EXPECT_EQ(b.word(id * 8), id + 100);
}

TEST_F(NotReady, ConcernsWritesWithImmediateOnly) {
  const Pair pair = connect(IBV_QPT_RC, {.rnr_retries = 0});
  fill(a.memory(), 8, 1);
  send(pair.a, write_to(a.sge(0, 8), b, 64));
  await_success(a.send_cq(), "a WRITE needs no RECV");
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(64), 8, 1));
  Request with_immediate = write_to(a.sge(0, 8), b, 64);
  with_immediate.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  send(pair.a, with_immediate);
  await_status(a.send_cq(), IBV_WC_RNR_RETRY_EXC_ERR, "a WRITE with immediate data needs one");
}

// Sections 9.8.2 and 9.8.3: unreliable receivers drop what finds no RECV.
class NotReadyUnreliable : public Rig, public testing::WithParamInterface<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, NotReadyUnreliable, testing::Values(IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return transport_name(type.param); });

TEST_P(NotReadyUnreliable, MessagesAreDropped) {
  const Pair pair = connect(GetParam());
  a.word(0) = 1;
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 5});
  EXPECT_EQ(await_success(a.send_cq(), "a SEND without RECV").wr_id, 5u);
  // On its way when the completion comes: time enough to arrive, or the next message would take its place.
  fabric().pass(std::chrono::milliseconds(20));
  a.word(8) = 2;
  recv(pair.b, {b.sge(0, 64)}, 6);
  send(pair.a, {.sges = {a.sge(8, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "the next message").wr_id, 6u);
  EXPECT_EQ(b.word(GetParam() == IBV_QPT_UD ? kGrhBytes : 0), 2u);
  EXPECT_TRUE(poll(b.recv_cq()).empty());
}

// The thing at the other end of a connection in the place of a working QP.
enum class Peer { destroyed, reset, failed, other_number };
const char* peer_name(Peer peer) {
  return peer == Peer::destroyed ? "Destroyed"
         : peer == Peer::reset   ? "Reset"
         : peer == Peer::failed  ? "InError"
                                 : "Unknown";
}
std::ostream& operator<<(std::ostream& out, Peer peer) {
  return out << peer_name(peer);
}
constexpr LinkOptions kImpatient{.timeout = 8, .retries = 1};  // 4.096 us * 2^8 = 1 ms

class Gone : public Rig, public testing::WithParamInterface<Peer> {
 protected:
  Pair connect_to_gone(ibv_qp_type type) {
    Pair pair{a.make_qp(type), b.make_qp(type)};
    const std::uint32_t number = pair.b->qp_num + (GetParam() == Peer::other_number ? 0x4321u : 0u);
    EXPECT_EQ(bring_up(a, pair.a, b, number, kImpatient), 0);
    EXPECT_EQ(bring_up(b, pair.b, a, pair.a->qp_num, kImpatient), 0);
    if (GetParam() == Peer::destroyed) {
      EXPECT_EQ(b.destroy(pair.b), 0);
    }
    if (GetParam() == Peer::reset) {
      EXPECT_EQ(modify(b, pair.b, to_state(IBV_QPS_RESET)), 0);
    }
    if (GetParam() == Peer::failed) {
      EXPECT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
    }
    return pair;
  }
};
INSTANTIATE_TEST_SUITE_P(, Gone, testing::Values(Peer::destroyed, Peer::reset, Peer::failed, Peer::other_number),
                         [](const auto& which) { return std::string(peer_name(which.param)); });

TEST_P(Gone, APeerIsGivenUpAfterTheRetries) {
  const Pair pair = connect_to_gone(IBV_QPT_RC);
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 5});
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 6});
  const std::vector<ibv_wc> ended = await(a.send_cq(), 2, "SENDs to nobody");
  EXPECT_THAT(ids(ended), ElementsAre(5, 6));
  EXPECT_THAT(statuses(ended), ElementsAre(IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR));
  await_until([&] { return state_of(a, pair.a) == IBV_QPS_ERR; }, "the sender's QP to fail");
}

TEST_P(Gone, AnUnreliableSenderDoesNotNotice) {
  const Pair pair = connect_to_gone(IBV_QPT_UC);
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 5});
  EXPECT_EQ(await_success(a.send_cq(), "a SEND to nobody").wr_id, 5u);
  EXPECT_EQ(state_of(a, pair.a), IBV_QPS_RTS);
}

class GoneFor : public Rig, public testing::WithParamInterface<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(, GoneFor,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                         IBV_WR_ATOMIC_CMP_AND_SWP),
                         [](const auto& which) { return std::string(opcode_name(which.param)); });

TEST_P(GoneFor, APeerIsGivenUpAfterTheRetries) {
  const Pair pair = connect(IBV_QPT_RC, kImpatient);
  ASSERT_EQ(b.destroy(pair.b), 0);
  send(pair.a,
       {.opcode = GetParam(), .sges = {a.sge(0, 8)}, .id = 5, .flags = 0, .remote = b.address(), .rkey = b.mr()->rkey});
  EXPECT_EQ(await_status(a.send_cq(), IBV_WC_RETRY_EXC_ERR, "a request to nobody").wr_id, 5u);
}

class Retries : public Rig {};

TEST_F(Retries, MayBeNone) {
  const Pair pair = connect(IBV_QPT_RC, {.timeout = 8, .retries = 0});
  ASSERT_EQ(b.destroy(pair.b), 0);
  send(pair.a, {.sges = {a.sge(0, 8)}});
  await_status(a.send_cq(), IBV_WC_RETRY_EXC_ERR, "a SEND to nobody without retries");
}

// Section 9.7.6.1.3: a try waits for the timeout at least (and four times that at most); each retry does it again.
TEST_F(Retries, TakeTheirTime) {
  const Pair pair = connect(IBV_QPT_RC, {.timeout = 12, .retries = 2});
  ASSERT_EQ(b.destroy(pair.b), 0);
  const Picos before = fabric().now();
  send(pair.a, {.sges = {a.sge(0, 8)}});
  await_status(a.send_cq(), IBV_WC_RETRY_EXC_ERR, "a SEND to nobody");
  const Nanos once(4096LL << 12);
  EXPECT_GE(fabric().now() - before, 3 * once);
}

TEST_F(Retries, ASurvivorWorksAgainWithAnotherPeer) {
  const Pair pair = connect(IBV_QPT_RC, kImpatient);
  ASSERT_EQ(b.destroy(pair.b), 0);
  send(pair.a, {.sges = {a.sge(0, 8)}});
  await_status(a.send_cq(), IBV_WC_RETRY_EXC_ERR, "a SEND to nobody");
  ASSERT_EQ(modify(a, pair.a, to_state(IBV_QPS_RESET)), 0);
  const Pair again{pair.a, b.make_qp(IBV_QPT_RC)};
  connect(again);
  marker(again);
}

}  // namespace
}  // namespace verbscope::conformance
