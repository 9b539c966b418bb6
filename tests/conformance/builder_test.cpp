// The work request builder: SENDs, lists, errors. ibv_wr_post(3) (the ibv_wr_* calls).
#include "tests/conformance/builder_rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

class Builder : public BuilderRig, public testing::WithParamInterface<ibv_qp_type> {
 protected:
  ibv_qp_type type() const { return GetParam(); }
  std::uint32_t grh() const { return type() == IBV_QPT_UD ? kGrhBytes : 0; }
  ibv_sge room(std::size_t offset, std::uint32_t length) const { return b.sge(offset, length + grh()); }
};
VERBSCOPE_EACH_TRANSPORT(Builder);

TEST_P(Builder, Sends) {
  const Built built = build(type());
  fill(a.memory(), 100, 1);
  recv(built.b, {room(0, 100)});
  ibv_wr_start(built.ex);
  next(built, 0xfedcba9876543210);
  ibv_wr_send(built.ex);
  address(built);
  set_sge(built, 0, 100);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  const ibv_wc wc = await_success(a.send_cq(), "a built SEND");
  EXPECT_EQ(wc.wr_id, 0xfedcba9876543210u);
  EXPECT_EQ(wc.opcode, IBV_WC_SEND);
  EXPECT_EQ(await_success(b.recv_cq(), "its RECV").byte_len, 100u + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), 100, 1));
}

TEST_P(Builder, SendsImmediateData) {
  const Built built = build(type());
  recv(built.b, {room(0, 64)});
  ibv_wr_start(built.ex);
  next(built, 1);
  ibv_wr_send_imm(built.ex, 0xcafe1234);
  address(built);
  set_sge(built, 0, 8);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  const ibv_wc wc = await_success(b.recv_cq(), "a built SEND with immediate data");
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(wc.imm_data, 0xcafe1234u);
}

TEST_P(Builder, CopiesInlineData) {
  const Built built = build(type());
  std::uint8_t here[40];
  fill(here, sizeof here, 1);
  recv(built.b, {room(0, 64)});
  ibv_wr_start(built.ex);
  next(built, 1, inline_flags());
  ibv_wr_send(built.ex);
  address(built);
  ibv_wr_set_inline_data(built.ex, here, sizeof here);
  std::memset(here, 0xee, sizeof here);  // "allows the caller to immediately re-use the buffer"
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  EXPECT_EQ(await_success(b.recv_cq(), "built inline data").byte_len, 40u + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), 40, 1));
}

TEST_P(Builder, CopiesAListOfInlineData) {
  const Built built = build(type());
  std::uint8_t here[40];
  fill(here, sizeof here, 1);
  const ibv_data_buf buffers[] = {{here, 7}, {here + 7, 0}, {here + 7, 33}};
  recv(built.b, {room(0, 64)});
  ibv_wr_start(built.ex);
  next(built, 1, inline_flags());
  ibv_wr_send(built.ex);
  address(built);
  ibv_wr_set_inline_data_list(built.ex, 3, buffers);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  // The deviation: a message without bytes.
  const std::uint32_t length = deviates("builder-list-lengths") ? 0 : 40;
  EXPECT_EQ(await_success(b.recv_cq(), "a built list of inline data").byte_len, length + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), length, 1));
}

TEST_P(Builder, TakesAListOfSges) {
  const Built built = build(type());
  fill(a.memory(), 100, 1);
  const ibv_sge sges[] = {a.sge(0, 10), a.sge(10, 0), a.sge(10, 90)};
  recv(built.b, {room(0, 100)});
  ibv_wr_start(built.ex);
  next(built, 1);
  ibv_wr_send(built.ex);
  address(built);
  ibv_wr_set_sge_list(built.ex, 3, sges);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  // The deviation: as many times the length of the first as there are.
  const std::uint32_t length = deviates("builder-list-lengths") ? 3 * sges[0].length : 100;
  EXPECT_EQ(await_success(b.recv_cq(), "a built list of SGEs").byte_len, length + grh());
  EXPECT_TRUE(has_pattern(b.memory(grh()), length, 1));
}

TEST_P(Builder, PostsSeveralAtOnce) {
  const Built built = build(type());
  for (std::uint64_t id = 0; id < 5; ++id) recv(built.b, {room(id * 256, 64)}, id);
  ibv_wr_start(built.ex);
  for (std::uint64_t id = 0; id < 5; ++id) {
    a.word(id * 8) = id + 100;
    next(built, 50 + id, id == 2 ? 0u : unsigned{IBV_SEND_SIGNALED});
    ibv_wr_send(built.ex);
    address(built);
    set_sge(built, id * 8, 8);
  }
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  EXPECT_THAT(ids(await(a.send_cq(), 4, "four of five signaled")), ElementsAre(50, 51, 53, 54));
  EXPECT_THAT(ids(await(b.recv_cq(), 5, "five messages")), ElementsAre(0, 1, 2, 3, 4));
  for (std::uint64_t id = 0; id < 5; ++id) EXPECT_EQ(b.word(id * 256 + grh()), id + 100);
}

// "No work is executed to the queue until ibv_wr_complete() returns success. ibv_wr_abort() will discard all work."
TEST_P(Builder, ForgetsWhatIsAborted) {
  const Built built = build(type());
  for (std::uint64_t id = 0; id < 2; ++id) recv(built.b, {room(id * 256, 64)}, id);
  ibv_wr_start(built.ex);
  for (std::uint64_t id = 0; id < 3; ++id) {
    next(built, 66);
    ibv_wr_send(built.ex);
    address(built);
    set_sge(built, 0, 8);
  }
  ibv_wr_abort(built.ex);
  a.word(64) = 99;
  ibv_wr_start(built.ex);
  next(built, 5);
  ibv_wr_send(built.ex);
  address(built);
  set_sge(built, 64, 8);
  ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  EXPECT_EQ(await_success(a.send_cq(), "the SEND after the aborted ones").wr_id, 5u);
  EXPECT_EQ(await_success(b.recv_cq(), "its RECV").wr_id, 0u);
  EXPECT_EQ(b.word(grh()), 99u);
  EXPECT_TRUE(poll(b.recv_cq()).empty());
}

// ibv_wr_post(3): both ways of posting may take turns on a QP.
TEST_P(Builder, TakesTurnsWithPostSend) {
  const Built built = build(type());
  for (std::uint64_t id = 0; id < 4; ++id) recv(built.b, {room(0, 64)}, id);
  for (std::uint64_t id = 0; id < 4; id += 2) {
    send(built.a, {.sges = {a.sge(0, 8)}, .id = id});
    ibv_wr_start(built.ex);
    next(built, id + 1);
    ibv_wr_send(built.ex);
    address(built);
    set_sge(built, 0, 8);
    ASSERT_EQ(ibv_wr_complete(built.ex), 0);
  }
  EXPECT_THAT(ids(await(a.send_cq(), 4, "posted both ways")), ElementsAre(0, 1, 2, 3));
}

// Errors of a builder or setter are told by ibv_wr_complete, and nothing of the list is posted.
TEST_P(Builder, TellsOfAFullQueueAtTheEnd) {
  QpAsk ask;
  ask.cap.max_send_wr = 4;
  const Built built = build(type(), ask);
  ibv_qp_attr attr{};
  ibv_qp_init_attr created{};
  ASSERT_EQ(a.verbs().query_qp(built.a, &attr, IBV_QP_CAP, &created), 0);
  recv(built.b, {room(0, 64)});
  ibv_wr_start(built.ex);
  for (std::uint32_t i = 0; i < 4 * created.cap.max_send_wr; ++i) {
    next(built, 66);
    ibv_wr_send(built.ex);
    address(built);
    set_sge(built, 0, 8);
  }
  EXPECT_NE(ibv_wr_complete(built.ex), 0);
  send(built.a, {.sges = {a.sge(0, 8)}, .id = 7});
  EXPECT_EQ(await_success(a.send_cq(), "a SEND after the list that did not fit").wr_id, 7u);
}

TEST_P(Builder, TellsOfTooMuchInlineDataAtTheEnd) {
  const Built built = build(type());
  std::vector<std::uint8_t> here(1 << 16);
  recv(built.b, {room(0, 64)});
  ibv_wr_start(built.ex);
  next(built, 66);
  ibv_wr_send(built.ex);
  address(built);
  ibv_wr_set_inline_data(built.ex, here.data(), here.size());
  EXPECT_NE(ibv_wr_complete(built.ex), 0);
  send(built.a, {.sges = {a.sge(0, 8)}, .id = 7});
  EXPECT_EQ(await_success(a.send_cq(), "a SEND after the one that was too long").wr_id, 7u);
}

TEST_P(Builder, IsNotThereForAPlainQp) {
  EXPECT_EQ(a.verbs().qp_to_qp_ex(a.make_qp(type())), nullptr);
}

}  // namespace
}  // namespace verbscope::conformance
