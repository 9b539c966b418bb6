// Completion queues: completion vectors and changes of size. ibv_create_cq(3), ibv_resize_cq(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Vectors : public Rig {
 protected:
  ibv_comp_channel* channel = b.make_channel();
};

TEST_F(Vectors, EachServesEvents) {
  ASSERT_GE(b.context()->num_comp_vectors, 1);
  for (int vector = 0; vector < b.context()->num_comp_vectors; ++vector) {
    ibv_cq* cq = b.keep(b.verbs().create_cq(b.context(), 16, channel, vector), "CQ", &Provider::destroy_cq);
    QpAsk ask;
    ask.recv_cq = cq;
    const Pair pair = connect(IBV_QPT_RC, {}, {}, ask);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    recv(pair.b, {b.sge(0, 64)});
    send(pair.a, {.sges = {a.sge(0, 8)}});
    EXPECT_EQ(fabric().await_event(channel, fabric().patience()), cq) << "vector " << vector;
    await_success(cq, "the RECV of the event");
    await_success(a.send_cq(), "its SEND");
  }
}

TEST_F(Vectors, ThatAreNotThereAreRefused) {
  errno = 0;
  ibv_cq* cq = b.verbs().create_cq(b.context(), 16, channel, b.context()->num_comp_vectors);
  EXPECT_EQ(cq, nullptr);
  EXPECT_EQ(errno, EINVAL);
  if (cq != nullptr) b.verbs().destroy_cq(cq);
}

class CqResize : public Rig {
 protected:
  ibv_cq* cq = b.make_cq(4);

  Pair connect_to_cq() {
    QpAsk ask;
    ask.recv_cq = cq;
    ask.cap.max_recv_wr = 64;
    return connect(IBV_QPT_RC, {}, {}, ask);
  }
  // Messages with ids from `first` on, whose RECVs complete to cq.
  void deliver(const Pair& pair, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t id = first; id < first + count; ++id) {
      recv(pair.b, {b.sge(0, 64)}, id);
      send(pair.a, {.sges = {a.sge(0, 8)}});
      await_success(a.send_cq(), "a SEND");
    }
  }
};

TEST_F(CqResize, TellsTheNewSize) {
  ASSERT_EQ(b.verbs().resize_cq(cq, 100), 0);
  EXPECT_GE(cq->cqe, 100);
}

TEST_F(CqResize, MakesRoomForMore) {
  const Pair pair = connect_to_cq();
  ASSERT_EQ(b.verbs().resize_cq(cq, 60), 0);
  deliver(pair, 0, 60);
  const std::vector<ibv_wc> all = await(cq, 60, "completions in the larger CQ");
  for (std::uint64_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].wr_id, i);
}

TEST_F(CqResize, KeepsWhatWaits) {
  const Pair pair = connect_to_cq();
  deliver(pair, 0, 3);
  ASSERT_EQ(b.verbs().resize_cq(cq, 60), 0);
  deliver(pair, 3, 40);
  const std::vector<ibv_wc> all = await(cq, 43, "completions from before and after");
  for (std::uint64_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].wr_id, i);
}

TEST_F(CqResize, ToASmallerOneKeepsWhatWaits) {
  ASSERT_EQ(b.verbs().resize_cq(cq, 200), 0);
  const Pair pair = connect_to_cq();
  deliver(pair, 0, 3);
  ASSERT_EQ(b.verbs().resize_cq(cq, 8), 0);
  deliver(pair, 3, 4);
  EXPECT_EQ(await(cq, 7, "completions from before and after").size(), 7u);
}

TEST_F(CqResize, BelowWhatWaitsIsRefused) {
  ASSERT_EQ(b.verbs().resize_cq(cq, 60), 0);
  const Pair pair = connect_to_cq();
  deliver(pair, 0, 20);
  fabric().pass(std::chrono::milliseconds(30));
  EXPECT_EQ(b.verbs().resize_cq(cq, 4), EINVAL);
  EXPECT_EQ(await(cq, 20, "what waited").size(), 20u);
}

TEST_F(CqResize, OutsideOfTheDevicesLimitsIsRefused) {
  EXPECT_EQ(b.verbs().resize_cq(cq, 0), EINVAL);
  EXPECT_EQ(b.verbs().resize_cq(cq, b.device().attributes().max_cqe + 1), EINVAL);
  EXPECT_GE(cq->cqe, 4);
}

}  // namespace
}  // namespace verbscope::conformance
