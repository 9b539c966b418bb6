// Scatter and gather lists, and inline data. InfiniBand Architecture Specification 1.3, volume 1, section 11.4.1;
// ibv_post_send(3), ibv_post_recv(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Gather : public EachTransport {};
VERBSCOPE_EACH_TRANSPORT(Gather);

TEST_P(Gather, PiecesAreSentOneBehindTheOther) {
  const Pair pair = connect(type());
  fill(a.memory(0), 10, 1);
  fill(a.memory(4096), 100, 2);
  fill(a.memory(8195), 3, 3);
  recv(pair.b, {room(0, 200)});
  send(pair.a, {.sges = {a.sge(0, 10), a.sge(4096, 100), a.sge(8195, 3)}});
  EXPECT_EQ(await_success(b.recv_cq(), "three pieces").byte_len, 113u + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), 10, 1));
  EXPECT_TRUE(has_pattern(b.memory(grh() + 10), 100, 2));
  EXPECT_TRUE(has_pattern(b.memory(grh() + 110), 3, 3));
}

TEST_P(Gather, APieceWithoutBytesAddsNone) {
  const Pair pair = connect(type());
  fill(a.memory(0), 20, 1);
  recv(pair.b, {room(0, 200)});
  send(pair.a, {.sges = {a.sge(0, 0), a.sge(0, 8), a.sge(0, 0), a.sge(8, 12)}});
  EXPECT_EQ(await_success(b.recv_cq(), "two pieces between empty ones").byte_len, 20u + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), 20, 1));
}

TEST_P(Gather, AReceiveIsFilledPieceByPiece) {
  const Pair pair = connect(type());
  fill(a.memory(0), 100, 1);
  recv(pair.b, {b.sge(0, grh() + 1), b.sge(1024, 0), b.sge(2048, 60), b.sge(4096, 60)});
  send(pair.a, {.sges = {a.sge(0, 100)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a scattered message").byte_len, 100u + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), 1, 1));
  EXPECT_TRUE(has_pattern(b.memory(2048), 60, 1, 1));
  EXPECT_TRUE(has_pattern(b.memory(4096), 39, 1, 61));
  EXPECT_TRUE(is_zero(b.memory(4096 + 39), 21)) << "room that the message does not fill";
}

TEST_P(Gather, AMessageWithoutBytesNeedsNoRoom) {
  const Pair pair = connect(type());
  if (datagram()) {
    recv(pair.b, {b.sge(0, kGrhBytes)});
  } else {
    recv(pair.b, {});
  }
  send(pair.a, {.sges = {}});
  EXPECT_EQ(await_success(b.recv_cq(), "an empty message").byte_len, grh());
}

// ibv_post_send(3): with IBV_SEND_INLINE the buffer can be used again as soon as the call returns.
TEST_P(Gather, InlineDataIsCopiedByThePost) {
  const Pair pair = connect(type());
  fill(a.memory(0), 48, 1);
  recv(pair.b, {room(0, 64)});
  send(pair.a, {.sges = {a.sge(0, 48)}, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  std::memset(a.memory(0), 0xee, 48);
  EXPECT_EQ(await_success(b.recv_cq(), "inline data").byte_len, 48u + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), 48, 1));
}

// ibv_post_send(3): "The L_Key will not be checked."
TEST_P(Gather, InlineDataNeedsNoRegistration) {
  const Pair pair = connect(type());
  std::uint8_t here[32];
  fill(here, sizeof here, 4);
  recv(pair.b, {room(0, 64)});
  send(pair.a, {.sges = {{reinterpret_cast<std::uint64_t>(here), sizeof here, 0xdeadbeef}},
                .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  await_success(a.send_cq(), "inline data of the stack");
  await_success(b.recv_cq(), "inline data of the stack");
  EXPECT_TRUE(has_pattern(b.memory(grh()), sizeof here, 4));
}

TEST_P(Gather, InlineDataMayHaveSeveralPieces) {
  const Pair pair = connect(type());
  fill(a.memory(0), 40, 1);
  recv(pair.b, {room(0, 64)});
  send(pair.a,
       {.sges = {a.sge(0, 7), a.sge(7, 0), a.sge(7, 20), a.sge(27, 13)}, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  EXPECT_EQ(await_success(b.recv_cq(), "inline pieces").byte_len, 40u + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), 40, 1));
}

TEST_P(Gather, InlineDataUpToTheLimitIsTakenAndNoMore) {
  const Pair pair = connect(type());
  ibv_qp_attr attr{};
  ibv_qp_init_attr created{};
  ASSERT_EQ(a.verbs().query_qp(pair.a, &attr, IBV_QP_CAP, &created), 0);
  const std::uint32_t most = created.cap.max_inline_data;
  ASSERT_GE(most, 64u);
  fill(a.memory(0), most, 1);
  recv(pair.b, {room(0, most)});
  const Posted posted = post(pair.a, {{.sges = {a.sge(0, most + 1)}, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}});
  EXPECT_THAT(posted.error, testing::AnyOf(EINVAL, ENOMEM)) << "which of the two is not specified";
  EXPECT_EQ(posted.bad, 0);
  send(pair.a, {.sges = {a.sge(0, most)}, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  EXPECT_EQ(await_success(b.recv_cq(), "as much inline data as the QP takes").byte_len, most + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), most, 1));
}

TEST_P(Gather, InlineDataMayBeNone) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)});
  send(pair.a, {.sges = {}, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  EXPECT_EQ(await_success(b.recv_cq(), "no inline data").byte_len, grh());
}

class GatherRemote : public EachConnected {};
VERBSCOPE_EACH_CONNECTED(GatherRemote);

TEST_P(GatherRemote, AWriteTakesItsPiecesInOrder) {
  const Pair pair = connect(type());
  fill(a.memory(0), 5000, 1);
  Request request = write_to(a.sge(0, 17), b, 3);
  request.sges = {a.sge(0, 17), a.sge(17, 0), a.sge(17, 4000), a.sge(4017, 983)};
  send(pair.a, request);
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(3), 5000, 1));
  EXPECT_TRUE(is_zero(b.memory(0), 3));
  EXPECT_TRUE(is_zero(b.memory(5003), 64));
}

TEST_P(GatherRemote, AnInlineWriteIsCopiedByThePost) {
  const Pair pair = connect(type());
  fill(a.memory(0), 40, 1);
  Request request = write_to(a.sge(0, 40), b, 11);
  request.flags |= IBV_SEND_INLINE;
  send(pair.a, request);
  std::memset(a.memory(0), 0xee, 40);
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(11), 40, 1));
}

// Pieces that end within packets.
TEST_P(GatherRemote, LongMessagesAreScatteredAcrossPackets) {
  const Pair pair = connect(type());
  const std::uint32_t length = 3 * mtu_of(a) + 777;
  fill(a.memory(0), length, 1);
  recv(pair.b, {b.sge(0, 1000), b.sge(65536, mtu_of(a)), b.sge(131072, 65536)});
  send(pair.a, {.sges = {a.sge(0, 99), a.sge(99, 2 * mtu_of(a)), a.sge(99 + 2 * mtu_of(a), mtu_of(a) + 678)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a long scattered message").byte_len, length);
  EXPECT_TRUE(has_pattern(b.memory(0), 1000, 1));
  EXPECT_TRUE(has_pattern(b.memory(65536), mtu_of(a), 1, 1000));
  EXPECT_TRUE(has_pattern(b.memory(131072), length - 1000 - mtu_of(a), 1, 1000 + mtu_of(a)));
}

class GatherRead : public Rig {};

TEST_F(GatherRead, AReadIsScatteredOverItsPieces) {
  const Pair pair = connect(IBV_QPT_RC);
  const std::uint32_t length = 2 * mtu_of(a) + 100;
  fill(b.memory(5), length, 1);
  Request request = read_of(a.sge(0, 50), b, 5);
  request.sges = {a.sge(0, 50), a.sge(8192, 0), a.sge(8192, mtu_of(a)), a.sge(65536, length - 50 - mtu_of(a))};
  send(pair.a, request);
  await_success(a.send_cq(), "a scattered READ");
  EXPECT_TRUE(has_pattern(a.memory(0), 50, 1));
  EXPECT_TRUE(has_pattern(a.memory(8192), mtu_of(a), 1, 50));
  EXPECT_TRUE(has_pattern(a.memory(65536), length - 50 - mtu_of(a), 1, 50 + mtu_of(a)));
}

}  // namespace
}  // namespace verbscope::conformance
