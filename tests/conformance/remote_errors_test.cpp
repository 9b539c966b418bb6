// Requests that the responder refuses. InfiniBand Architecture Specification 1.3, volume 1, sections 9.7.4 (validation
// of requests), 9.7.5.2 (NAK codes), 9.9.3 (responder's errors) and 11.6.2 (completion statuses): a wrong key, range or
// right of the memory region is a Remote Access Error, an operation for which the QP is not enabled an invalid request.
#include <tuple>

#include "tests/conformance/faults.hpp"

namespace verbscope::conformance {
namespace {

constexpr std::size_t kTarget = 4096;

unsigned right_for(ibv_wr_opcode opcode) {
  if (is_atomic(opcode)) return IBV_ACCESS_REMOTE_ATOMIC;
  return opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

// The key of a region of `side` with which `opcode` may not reach the 8 bytes at kTarget.
std::uint32_t wrong_key(Side& side, Fault fault, ibv_wr_opcode opcode) {
  return wrong_keys(side, fault, kTarget, 8, static_cast<int>(right_for(opcode))).rkey;
}

const auto kOperations = testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
                                         IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP);

class RemoteAccess : public Rig, public testing::WithParamInterface<std::tuple<ibv_wr_opcode, Fault>> {};
INSTANTIATE_TEST_SUITE_P(, RemoteAccess,
                         testing::Combine(kOperations, testing::Values(Fault::unknown_key, Fault::other_pd,
                                                                       Fault::past_the_end, Fault::before_the_start,
                                                                       Fault::deregistered, Fault::no_right)),
                         [](const auto& which) {
                           return std::string(opcode_name(std::get<0>(which.param))) +
                                  fault_name(std::get<1>(which.param));
                         });

TEST_P(RemoteAccess, IsRefused) {
  const auto [opcode, fault] = GetParam();
  const Pair pair = connect(IBV_QPT_RC);
  fill(a.memory(), 8, 1);
  if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) recv(pair.b, {});
  send(pair.a, {.opcode = opcode,
                .sges = {a.sge(0, 8)},
                .id = 5,
                .flags = 0,  // an error is told of unsignaled requests too
                .remote = b.address(kTarget),
                .rkey = wrong_key(b, fault, opcode),
                .compare_add = 0,
                .swap = 1});
  EXPECT_EQ(await_status(a.send_cq(), IBV_WC_REM_ACCESS_ERR, "a refused access").wr_id, 5u);
  await_until([&] { return state_of(a, pair.a) == IBV_QPS_ERR; }, "the requester's QP to fail");
  EXPECT_TRUE(is_zero(b.memory(kTarget), 8));
  EXPECT_TRUE(has_pattern(a.memory(), 8, 1)) << "nothing came back";
}

class QpRights : public Rig, public testing::WithParamInterface<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(, QpRights, kOperations,
                         [](const auto& which) { return std::string(opcode_name(which.param)); });

// The region allows it, the QP does not.
TEST_P(QpRights, AreNeededBesideThoseOfTheRegion) {
  LinkOptions options;
  options.access = kRemoteAccess & ~right_for(GetParam());
  const Pair pair = connect(IBV_QPT_RC, options);
  if (GetParam() == IBV_WR_RDMA_WRITE_WITH_IMM) recv(pair.b, {});
  fill(a.memory(), 8, 1);
  send(pair.a, {.opcode = GetParam(),
                .sges = {a.sge(0, 8)},
                .id = 5,
                .remote = b.address(kTarget),
                .rkey = b.mr()->rkey,
                .compare_add = 0,
                .swap = 1});
  EXPECT_EQ(await_status(a.send_cq(), IBV_WC_REM_INV_REQ_ERR, "what the QP does not allow").wr_id, 5u);
  EXPECT_TRUE(is_zero(b.memory(kTarget), 8));
}

class RemoteErrors : public Rig {};

TEST_F(RemoteErrors, FlushWhatIsBehindThem) {
  const Pair pair = connect(IBV_QPT_RC);
  Request wrong = write_to(a.sge(0, 8), b, 0);
  wrong.rkey ^= 0x5a5a00;
  wrong.id = 1;
  Request right = write_to(a.sge(0, 8), b, 0);
  right.id = 2;
  EXPECT_EQ(post(pair.a, {wrong, right, right}).error, 0);
  const std::vector<ibv_wc> ended = await(a.send_cq(), 3, "a refused WRITE and two behind it");
  EXPECT_THAT(statuses(ended), testing::ElementsAre(IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_THAT(ids(ended), testing::ElementsAre(1, 2, 2));
}

// The requests before the refused one have been carried out, and their completions say so.
TEST_F(RemoteErrors, LeaveWhatIsBeforeThem) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(a.memory(), 8, 1);
  Request right = write_to(a.sge(0, 8), b, 64);
  right.id = 1;
  Request wrong = write_to(a.sge(0, 8), b, 128);
  wrong.rkey ^= 0x5a5a00;
  wrong.id = 2;
  EXPECT_EQ(post(pair.a, {right, wrong}).error, 0);
  const std::vector<ibv_wc> ended = await(a.send_cq(), 2, "a WRITE and a refused one");
  EXPECT_THAT(statuses(ended), testing::ElementsAre(IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR));
  await_until([&] { return has_pattern(b.memory(64), 8, 1); }, "the first WRITE to be seen");
  EXPECT_TRUE(is_zero(b.memory(128), 8));
}

TEST_F(RemoteErrors, StopTheRespondersQp) {
  const Pair pair = connect(IBV_QPT_RC);
  recv(pair.b, {b.sge(0, 64)}, 6);
  Request wrong = write_to(a.sge(0, 8), b, 0);
  wrong.rkey ^= 0x5a5a00;
  send(pair.a, wrong);
  await_status(a.send_cq(), IBV_WC_REM_ACCESS_ERR, "a refused WRITE");
  await_until([&] { return state_of(b, pair.b) == IBV_QPS_ERR; }, "the responder's QP to fail");
  EXPECT_EQ(await_status(b.recv_cq(), IBV_WC_WR_FLUSH_ERR, "the responder's RECV").wr_id, 6u);
}

// Section 9.9.3: an unreliable responder drops what it refuses; the sender is told nothing.
class UnreliableErrors : public Rig, public testing::WithParamInterface<Fault> {};
INSTANTIATE_TEST_SUITE_P(, UnreliableErrors, testing::Values(Fault::unknown_key, Fault::past_the_end, Fault::no_right),
                         [](const auto& which) { return std::string(fault_name(which.param)); });

TEST_P(UnreliableErrors, DropTheWrite) {
  const Pair pair = connect(IBV_QPT_UC);
  fill(a.memory(), 8, 1);
  send(pair.a, {.opcode = IBV_WR_RDMA_WRITE,
                .sges = {a.sge(0, 8)},
                .id = 5,
                .remote = b.address(kTarget),
                .rkey = wrong_key(b, GetParam(), IBV_WR_RDMA_WRITE)});
  EXPECT_EQ(await_success(a.send_cq(), "a WRITE that the responder drops").wr_id, 5u);
  marker(pair);
  EXPECT_TRUE(is_zero(b.memory(kTarget), 8));
}

TEST_F(RemoteErrors, OfAnUnreliableQpWithoutTheRightDropTheWrite) {
  LinkOptions options;
  options.access = 0;
  const Pair pair = connect(IBV_QPT_UC, options);
  fill(a.memory(), 8, 1);
  send(pair.a, write_to(a.sge(0, 8), b, kTarget));
  await_success(a.send_cq(), "a WRITE that the responder drops");
  marker(pair);
  EXPECT_TRUE(is_zero(b.memory(kTarget), 8));
}

// Section 9.7.4.1: for a message without bytes the R_Key is not checked.
TEST_F(RemoteErrors, NeedBytes) {
  const Pair pair = connect(IBV_QPT_RC);
  send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {}, .remote = 0, .rkey = 0x12345});
  await_success(a.send_cq(), "a WRITE of no byte with a wrong key");
  send(pair.a, {.opcode = IBV_WR_RDMA_READ, .sges = {}, .remote = 0, .rkey = 0x12345});
  await_success(a.send_cq(), "a READ of no byte with a wrong key");
}

}  // namespace
}  // namespace verbscope::conformance
