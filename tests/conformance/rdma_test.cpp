// READs and WRITEs: where the bytes go, and in which order things are seen. InfiniBand Architecture Specification 1.3,
// volume 1, sections 9.4.3 and 9.4.4 (RDMA), 9.5 and 10.8.3.3 (ordering; Table 79).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

class Rdma : public EachConnected {};
VERBSCOPE_EACH_CONNECTED(Rdma);

TEST_P(Rdma, AWriteTouchesItsBytesOnly) {
  const Pair pair = connect(type());
  std::memset(b.memory(), 0x77, 8192);
  fill(a.memory(1001), 3000, 1);
  send(pair.a, write_to(a.sge(1001, 3000), b, 777));
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(777), 3000, 1));
  for (std::size_t i = 0; i < 777; ++i) ASSERT_EQ(b.memory(i)[0], 0x77) << i;
  for (std::size_t i = 3777; i < 8192; ++i) ASSERT_EQ(b.memory(i)[0], 0x77) << i;
}

// The target is not told of a WRITE.
TEST_P(Rdma, AWriteConsumesNoReceive) {
  const Pair pair = connect(type());
  recv(pair.b, {b.sge(4096, 64)}, 6);
  send(pair.a, write_to(a.sge(0, 8), b, 0));
  await_success(a.send_cq(), "a WRITE");
  send(pair.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND after a WRITE").wr_id, 6u);
  EXPECT_TRUE(poll(b.recv_cq()).empty());
}

// Table 79: a SEND behind a WRITE is seen after it.
TEST_P(Rdma, ASendTellsThatTheWritesBeforeItAreThere) {
  const Pair pair = connect(type());
  recv(pair.b, {b.sge(Side::kMemory - 64, 64)});
  fill(a.memory(), 50'000, 1);
  EXPECT_EQ(post(pair.a, {write_to(a.sge(0, 50'000), b, 0), {.sges = {a.sge(0, 8)}}}).error, 0);
  await_success(b.recv_cq(), "a SEND behind a long WRITE");
  EXPECT_TRUE(has_pattern(b.memory(), 50'000, 1));
}

TEST_P(Rdma, OfTwoWritesTheLaterStays) {
  const Pair pair = connect(type());
  fill(a.memory(0), 1000, 1);
  fill(a.memory(4096), 1000, 2);
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(post(pair.a, {write_to(a.sge(0, 1000), b, 0), write_to(a.sge(4096, 1000), b, 0)}).error, 0);
  }
  EXPECT_EQ(await(a.send_cq(), 8, "WRITEs to one place").size(), 8u);
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(), 1000, 2));
}

TEST_P(Rdma, WritesGoBothWaysAtOnce) {
  const Pair pair = connect(type());
  fill(a.memory(0), 20'000, 1);
  fill(b.memory(0), 20'000, 2);
  send(pair.a, write_to(a.sge(0, 20'000), b, 65536));
  send(pair.b, write_to(b.sge(0, 20'000), a, 65536));
  await_success(a.send_cq(), "a's WRITE");
  await_success(b.send_cq(), "b's WRITE");
  marker(pair);
  recv(pair.a, {a.sge(Side::kMemory - 64, 64)});
  send(pair.b, {.sges = {b.sge(Side::kMemory - 64, 8)}});
  await_success(a.recv_cq(), "a SEND behind b's WRITE");
  EXPECT_TRUE(has_pattern(b.memory(65536), 20'000, 1));
  EXPECT_TRUE(has_pattern(a.memory(65536), 20'000, 2));
}

// A region may begin and end anywhere.
TEST_P(Rdma, AWriteMayFillARegionExactly) {
  const Pair pair = connect(type());
  ibv_mr* region = b.make_mr(4099, 501, kAllAccess);
  fill(a.memory(), 501, 1);
  Request request = write_to(a.sge(0, 501), b, 4099);
  request.rkey = region->rkey;
  send(pair.a, request);
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(4099), 501, 1));
  EXPECT_TRUE(is_zero(b.memory(4600), 8));
}

// A thread of the target sees the bytes by looking at memory alone.
TEST_P(Rdma, AWriteIsSeenByAThreadThatPollsMemory) {
  const Pair pair = connect(type());
  fabric().watch(b.memory(), 64);
  a.word(0) = 0x1122334455667788;
  send(pair.a, write_to(a.sge(0, 8), b, 0));
  await_until([&] { return *static_cast<volatile std::uint64_t*>(&b.word(0)) == 0x1122334455667788; },
              "the WRITE to be seen in memory");
}

class Reads : public Rig {};

TEST_F(Reads, TakeTheirBytesFromTheAddressNamed) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(b.memory(777), 3000, 1);
  std::memset(a.memory(), 0x77, 8192);
  send(pair.a, read_of(a.sge(1001, 3000), b, 777));
  const ibv_wc wc = await_success(a.send_cq(), "a READ");
  EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
  EXPECT_TRUE(has_pattern(a.memory(1001), 3000, 1));
  for (std::size_t i = 0; i < 1001; ++i) ASSERT_EQ(a.memory(i)[0], 0x77) << i;
  for (std::size_t i = 4001; i < 8192; ++i) ASSERT_EQ(a.memory(i)[0], 0x77) << i;
  EXPECT_TRUE(has_pattern(b.memory(777), 3000, 1)) << "the source";
}

TEST_F(Reads, SeeTheWritesBeforeThem) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(a.memory(0), 9000, 1);
  Request write = write_to(a.sge(0, 9000), b, 0);
  write.flags = 0;
  Request read = read_of(a.sge(65536, 9000), b, 0);
  EXPECT_EQ(post(pair.a, {write, read}).error, 0);
  EXPECT_EQ(await_success(a.send_cq(), "a READ behind a WRITE").opcode, IBV_WC_RDMA_READ);
  EXPECT_TRUE(has_pattern(a.memory(65536), 9000, 1));
}

// Table 79: a WRITE behind a READ does not change what the READ brings: the responder carries requests out in order.
TEST_F(Reads, DoNotSeeTheWritesBehindThem) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(b.memory(0), 6000, 1);
  fill(a.memory(0), 6000, 2);
  EXPECT_EQ(post(pair.a, {read_of(a.sge(65536, 6000), b, 0), write_to(a.sge(0, 6000), b, 0)}).error, 0);
  EXPECT_EQ(await(a.send_cq(), 2, "a READ and a WRITE").size(), 2u);
  marker(pair);
  EXPECT_TRUE(has_pattern(a.memory(65536), 6000, 1));
  EXPECT_TRUE(has_pattern(b.memory(0), 6000, 2));
}

// IBV_SEND_FENCE: the request waits until the READs before it are done (section 10.8.3.3).
class Fence : public Rig, public testing::WithParamInterface<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(, Fence, testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE),
                         [](const auto& which) { return std::string(opcode_name(which.param)); });

TEST_P(Fence, ARequestMaySendWhatTheReadBeforeItBrings) {
  const Pair pair = connect(IBV_QPT_RC);
  constexpr std::uint32_t kLength = 40'000;
  fill(b.memory(0), kLength, 1);
  Request request{.opcode = GetParam(),
                  .sges = {a.sge(0, kLength)},
                  .flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
                  .remote = b.address(65536),
                  .rkey = b.mr()->rkey};
  if (GetParam() == IBV_WR_SEND) recv(pair.b, {b.sge(65536, kLength)});
  EXPECT_EQ(post(pair.a, {read_of(a.sge(0, kLength), b, 0), request}).error, 0);
  EXPECT_EQ(await(a.send_cq(), 2, "a READ and a fenced request").size(), 2u);
  if (GetParam() == IBV_WR_SEND) await_success(b.recv_cq(), "the fenced SEND");
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(65536), kLength, 1));
}

TEST_F(Reads, CompleteInTheOrderOfPosting) {
  const Pair pair = connect(IBV_QPT_RC);
  std::vector<Request> list;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t id = 0; id < 9; ++id) {
    list.push_back(id % 3 == 1 ? write_to(a.sge(0, 8), b, 65536)
                               : read_of(a.sge(id * 4096, id % 2 == 0 ? 4000 : 1), b, 0));
    list.back().id = id;
    expected.push_back(id);
  }
  EXPECT_EQ(post(pair.a, list).error, 0);
  const std::vector<ibv_wc> done = await(a.send_cq(), list.size(), "READs and WRITEs of many lengths");
  EXPECT_EQ(ids(done), expected);
  EXPECT_THAT(statuses(done), testing::Each(IBV_WC_SUCCESS));
}

// max_rd_atomic: the requester holds back what the responder has no room for (section 9.4.4).
class Outstanding : public Rig, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(, Outstanding, testing::Values(1, 2, 16),
                         [](const auto& which) { return "UpTo" + std::to_string(which.param); });

TEST_P(Outstanding, ReadsAreHeldBackAndAllDone) {
  const int most = std::min(GetParam(), a.device().attributes().max_qp_init_rd_atom);
  QpAsk ask;
  ask.cap.max_send_wr = 64;
  const Pair pair = connect(IBV_QPT_RC, {.max_rd_atomic = static_cast<std::uint8_t>(most)}, ask);
  std::vector<Request> list;
  for (unsigned i = 0; i < 40; ++i) {
    fill(b.memory(i * 2048), 1500, i);
    list.push_back(read_of(a.sge(i * 2048, 1500), b, i * 2048));
    list.back().id = i;
  }
  EXPECT_EQ(post(pair.a, list).error, 0);
  const std::vector<ibv_wc> done = await(a.send_cq(), 40, "forty READs");
  EXPECT_THAT(statuses(done), testing::Each(IBV_WC_SUCCESS));
  for (unsigned i = 0; i < 40; ++i) EXPECT_TRUE(has_pattern(a.memory(i * 2048), 1500, i)) << "READ " << i;
}

TEST_F(Reads, GoBothWaysAtOnce) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(a.memory(0), 20'000, 1);
  fill(b.memory(0), 20'000, 2);
  send(pair.a, read_of(a.sge(65536, 20'000), b, 0));
  send(pair.b, read_of(b.sge(65536, 20'000), a, 0));
  await_success(a.send_cq(), "a's READ");
  await_success(b.send_cq(), "b's READ");
  EXPECT_TRUE(has_pattern(a.memory(65536), 20'000, 2));
  EXPECT_TRUE(has_pattern(b.memory(65536), 20'000, 1));
}

// Two regions over the same bytes have rights of their own.
TEST_F(Reads, NeedTheRightOfTheRegionWhoseKeyIsGiven) {
  const Pair pair = connect(IBV_QPT_RC);
  ibv_mr* to_write = b.make_mr(0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ibv_mr* to_read = b.make_mr(0, 4096, IBV_ACCESS_REMOTE_READ);
  EXPECT_NE(to_write->rkey, to_read->rkey);
  Request request = read_of(a.sge(0, 8), b, 0);
  request.rkey = to_read->rkey;
  send(pair.a, request);
  await_success(a.send_cq(), "a READ of a region to read");
  request.rkey = to_write->rkey;
  send(pair.a, request);
  await_status(a.send_cq(), IBV_WC_REM_ACCESS_ERR, "a READ of a region to write");
}

class Regions : public Rig {};

// ibv_reg_mr(3): remote writes and atomics need local write.
TEST_F(Regions, WithRemoteWriteNeedLocalWrite) {
  for (const int access : {int{IBV_ACCESS_REMOTE_WRITE}, int{IBV_ACCESS_REMOTE_ATOMIC}}) {
    errno = 0;
    ibv_mr* mr = a.verbs().reg_mr(a.pd(), a.memory(), 4096, access);
    EXPECT_EQ(mr, nullptr);
    EXPECT_EQ(errno, EINVAL);
    if (mr != nullptr) a.verbs().dereg_mr(mr);
  }
}

TEST_F(Regions, TellWhatWasRegistered) {
  ibv_mr* mr = a.make_mr(4099, 501, kAllAccess);
  EXPECT_EQ(mr->addr, a.memory(4099));
  EXPECT_EQ(mr->length, 501u);
  EXPECT_EQ(mr->pd, a.pd());
  EXPECT_EQ(mr->context, a.context());
}

TEST_F(Regions, HaveKeysOfTheirOwn) {
  ibv_mr* first = a.make_mr(0, 4096, kAllAccess);
  ibv_mr* second = a.make_mr(0, 4096, kAllAccess);
  EXPECT_NE(first->lkey, second->lkey);
  EXPECT_NE(first->rkey, second->rkey);
  EXPECT_NE(first->lkey, a.mr()->lkey);
}

}  // namespace
}  // namespace verbscope::conformance
