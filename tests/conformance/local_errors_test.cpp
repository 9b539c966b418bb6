// Requests that fail at the side that posted them. InfiniBand Architecture Specification 1.3, volume 1, sections 9.9.2
// (requester's errors), 9.9.3 (responder's) and 11.6.2 (completion statuses): a key that is unknown, of another PD or
// without the right, and a range outside of the region are Local Protection Errors.
#include <tuple>

#include "tests/conformance/faults.hpp"

namespace verbscope::conformance {
namespace {

// 64 bytes of `side` that a local access may not use.
ibv_sge wrong_buffer(Side& side, Fault fault) {
  constexpr std::uint32_t kLength = 64;
  ibv_sge sge = side.sge(4096, kLength);
  sge.lkey = wrong_keys(side, fault, 4096, kLength).lkey;
  return sge;
}

const auto kFaults = testing::Values(Fault::unknown_key, Fault::other_pd, Fault::past_the_end, Fault::before_the_start,
                                     Fault::deregistered);
std::string name(const testing::TestParamInfo<std::tuple<ibv_qp_type, Fault>>& which) {
  return transport_name(std::get<0>(which.param)) + fault_name(std::get<1>(which.param));
}

class LocalSendErrors : public Rig, public testing::WithParamInterface<std::tuple<ibv_qp_type, Fault>> {};
INSTANTIATE_TEST_SUITE_P(, LocalSendErrors,
                         testing::Combine(testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD), kFaults), name);

TEST_P(LocalSendErrors, EndTheRequestAndStopTheQp) {
  const auto [type, fault] = GetParam();
  const Pair pair = connect(type);
  recv(pair.b, {b.sge(0, 256)});
  send(pair.a, {.sges = {wrong_buffer(a, fault)}, .id = 5, .flags = 0});  // an error is told of unsignaled ones too
  const bool of_key = fault != Fault::past_the_end && fault != Fault::before_the_start;
  const bool other = of_key && deviates("bad-send-key-status");
  const ibv_wc wc =
      await_status(a.send_cq(), other ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR, "a SEND from a wrong buffer");
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_EQ(wc.qp_num, pair.a->qp_num);
  await_until([&] { return state_of(a, pair.a) != IBV_QPS_RTS; }, "the QP to leave RTS");
  EXPECT_TRUE(is_zero(b.memory(), 256));
}

// Operations that write to local memory, or read it, other than SEND.
class LocalErrorsOf : public Rig, public testing::WithParamInterface<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(, LocalErrorsOf,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                         IBV_WR_ATOMIC_CMP_AND_SWP),
                         [](const auto& which) { return std::string(opcode_name(which.param)); });

TEST_P(LocalErrorsOf, AnUnknownKeyEndsTheRequest) {
  const Pair pair = connect(IBV_QPT_RC);
  ibv_sge wrong = a.sge(0, 8);
  wrong.lkey ^= 0x5a5a00;
  send(pair.a, {.opcode = GetParam(), .sges = {wrong}, .id = 5, .remote = b.address(64), .rkey = b.mr()->rkey});
  const bool other = GetParam() == IBV_WR_RDMA_WRITE && deviates("bad-send-key-status");
  const ibv_wc_status status = other ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR;
  EXPECT_EQ(await_status(a.send_cq(), status, "a request with a wrong key").wr_id, 5u);
  EXPECT_TRUE(is_zero(a.memory(), 8));
}

// A READ or an atomic may bring its data only where a local write is allowed; a WRITE only reads.
TEST_P(LocalErrorsOf, ResultsNeedLocalWrite) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(b.memory(64), 8, 1);
  ibv_sge local = a.sge(4096, 8);
  local.lkey = a.make_mr(4096, 4096, IBV_ACCESS_REMOTE_READ)->lkey;
  send(pair.a, {.opcode = GetParam(), .sges = {local}, .id = 5, .remote = b.address(64), .rkey = b.mr()->rkey});
  const bool allowed = GetParam() == IBV_WR_RDMA_WRITE;
  await_status(a.send_cq(), allowed ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, "a request on memory to read only");
  EXPECT_TRUE(is_zero(a.memory(4096), 8));
}

class LocalReceiveErrors : public Rig, public testing::WithParamInterface<std::tuple<ibv_qp_type, Fault>> {};
INSTANTIATE_TEST_SUITE_P(, LocalReceiveErrors, testing::Combine(testing::Values(IBV_QPT_RC), kFaults), name);

// Section 9.9.3: the receiver's RECV ends with a Local Protection Error, the sender is told of a Remote Operation
// Error.
TEST_P(LocalReceiveErrors, EndBothSides) {
  const auto [type, fault] = GetParam();
  const Pair pair = connect(type);
  recv(pair.b, {wrong_buffer(b, fault)}, 6);
  send(pair.a, {.sges = {a.sge(0, 64)}, .id = 5});
  const bool other = deviates("bad-receive-buffer-status");
  const ibv_wc received =
      await_status(b.recv_cq(), other ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR, "a RECV into a wrong buffer");
  EXPECT_EQ(received.wr_id, 6u);
  EXPECT_EQ(await_status(a.send_cq(), IBV_WC_REM_OP_ERR, "a SEND to a wrong buffer").wr_id, 5u);
  await_until([&] { return state_of(b, pair.b) == IBV_QPS_ERR; }, "the receiver's QP to fail");
}

TEST_F(Rig, AReceiveIntoMemoryToReadOnlyEndsBothSides) {
  const Pair pair = connect(IBV_QPT_RC);
  ibv_sge room = b.sge(4096, 64);
  room.lkey = b.make_mr(4096, 4096, IBV_ACCESS_REMOTE_READ)->lkey;
  recv(pair.b, {room});
  fill(a.memory(), 64, 1);
  send(pair.a, {.sges = {a.sge(0, 64)}});
  const bool other = deviates("bad-receive-buffer-status");
  await_status(b.recv_cq(), other ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR, "a RECV into memory to read only");
  await_status(a.send_cq(), IBV_WC_REM_OP_ERR, "a SEND into memory to read only");
  EXPECT_TRUE(is_zero(b.memory(4096), 64));
}

class TooLong : public EachTransport {};
VERBSCOPE_EACH_TRANSPORT(TooLong);

// Section 9.9.3: the RECV ends with a Local Length Error. On RC the sender is told of an invalid request; an unreliable
// sender is told nothing.
TEST_P(TooLong, AMessageForItsReceiveEndsTheReceive) {
  const Pair pair = connect(type());
  const bool other = deviates("long-message-status");
  fill(a.memory(), 65, 1);
  recv(pair.b, {room(0, 64)}, 6);
  send(pair.a, {.sges = {a.sge(0, 65)}, .id = 5});
  const ibv_wc_status refused = other ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR;
  const ibv_wc_status at_sender = type() == IBV_QPT_RC ? refused : IBV_WC_SUCCESS;
  EXPECT_EQ(await_status(a.send_cq(), at_sender, "a SEND that is too long").wr_id, 5u);
  const ibv_wc_status at_receiver = other ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR;
  EXPECT_EQ(await_status(b.recv_cq(), at_receiver, "a RECV that is too short").wr_id, 6u);
  EXPECT_TRUE(is_zero(b.memory(64 + grh()), 64)) << "behind the room of the RECV";
}

class Flushing : public EachTransport {};
VERBSCOPE_EACH_TRANSPORT(Flushing);

// Section 10.3.1: in the error state, outstanding work is completed in error, and so is what is posted afterwards.
TEST_P(Flushing, PostedReceivesComeBackInOrder) {
  const Pair pair = connect(type());
  for (std::uint64_t id = 0; id < 5; ++id) recv(pair.b, {room(0, 64)}, id);
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
  const std::vector<ibv_wc> flushed = await(b.recv_cq(), 5, "flushed RECVs");
  EXPECT_THAT(ids(flushed), testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(statuses(flushed), testing::Each(IBV_WC_WR_FLUSH_ERR));
  for (const ibv_wc& wc : flushed) EXPECT_EQ(wc.qp_num, pair.b->qp_num);
}

TEST_P(Flushing, ReceivesPostedInErrorComeBack) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)}, 8);
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
  // The transition may flush in the background: it must be over, or it takes the next RECV along.
  EXPECT_EQ(await_status(b.recv_cq(), IBV_WC_WR_FLUSH_ERR, "a RECV posted before ERR").wr_id, 8u);
  fabric().pass(std::chrono::milliseconds(30));
  recv(pair.b, {room(0, 64)}, 9);
  if (deviates("receive-in-error-waits")) {
    fabric().pass(std::chrono::milliseconds(30));
    EXPECT_TRUE(poll(b.recv_cq()).empty());
    return;
  }
  EXPECT_EQ(await_status(b.recv_cq(), IBV_WC_WR_FLUSH_ERR, "a RECV posted in ERR").wr_id, 9u);
}

TEST_P(Flushing, SendsPostedInErrorComeBack) {
  const Pair pair = connect(type());
  ASSERT_EQ(modify(a, pair.a, to_state(IBV_QPS_ERR)), 0);
  for (std::uint64_t id = 0; id < 3; ++id) send(pair.a, {.sges = {a.sge(0, 8)}, .id = id});
  const std::vector<ibv_wc> flushed = await(a.send_cq(), 3, "SENDs posted in ERR");
  EXPECT_THAT(ids(flushed), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(statuses(flushed), testing::Each(IBV_WC_WR_FLUSH_ERR));
}

TEST_P(Flushing, WhatIsBehindAFailedSendComesBackInOrder) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)});
  ibv_sge wrong = a.sge(0, 8);
  wrong.lkey ^= 0x5a5a00;
  EXPECT_EQ(
      post(pair.a, {{.sges = {wrong}, .id = 1}, {.sges = {a.sge(0, 8)}, .id = 2}, {.sges = {a.sge(0, 8)}, .id = 3}})
          .error,
      0);
  const std::vector<ibv_wc> ended = await(a.send_cq(), 3, "a failed SEND and two behind it");
  EXPECT_THAT(ids(ended), testing::ElementsAre(1, 2, 3));
  const ibv_wc_status first = deviates("bad-send-key-status") ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR;
  EXPECT_THAT(statuses(ended), testing::ElementsAre(first, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR));
}

// Unsignaled requests have a completion when they fail (section 10.8.2.1).
TEST_P(Flushing, UnsignaledSendsComeBackToo) {
  const Pair pair = connect(type());
  ASSERT_EQ(modify(a, pair.a, to_state(IBV_QPS_ERR)), 0);
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 4, .flags = 0});
  EXPECT_EQ(await_status(a.send_cq(), IBV_WC_WR_FLUSH_ERR, "an unsignaled SEND in ERR").wr_id, 4u);
}

TEST_P(Flushing, AQpWorksAgainAfterIt) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)});
  for (const auto& [side, qp] : {std::pair{&a, pair.a}, std::pair{&b, pair.b}}) {
    ASSERT_EQ(modify(*side, qp, to_state(IBV_QPS_ERR)), 0);
  }
  await_status(b.recv_cq(), IBV_WC_WR_FLUSH_ERR, "the flushed RECV");
  for (const auto& [side, qp] : {std::pair{&a, pair.a}, std::pair{&b, pair.b}}) {
    ASSERT_EQ(modify(*side, qp, to_state(IBV_QPS_RESET)), 0);
  }
  connect(pair);
  marker(pair);
}

// SENDs that wait for a RECV of the peer are outstanding: they end when the QP is told to fail.
TEST_F(Rig, SendsThatWaitForTheReceiverAreFlushed) {
  const Pair pair = connect(IBV_QPT_RC);
  for (std::uint64_t id = 0; id < 3; ++id) send(pair.a, {.sges = {a.sge(0, 8)}, .id = id});
  ASSERT_EQ(modify(a, pair.a, to_state(IBV_QPS_ERR)), 0);
  const std::vector<ibv_wc> flushed = await(a.send_cq(), 3, "SENDs without RECV");
  EXPECT_THAT(ids(flushed), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(statuses(flushed), testing::Each(IBV_WC_WR_FLUSH_ERR));
}

}  // namespace
}  // namespace verbscope::conformance
