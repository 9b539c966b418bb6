// CQEs that the completion unit must delay: their order, and what becomes of them when the QP or the queue changes
// meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "nic_sim/nic/nic.hpp"
#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Picos kDelay = std::chrono::microseconds(5);

// The NIC has lost the state of every queue: each is read again when it is first needed, which takes kDelay.
struct LostContexts {
  sim::Engine* engine;
  std::map<sim::SimCq*, bool> here{};  // false: is being read
  void* asking = nullptr;

  template <class Writer>
  bool at_hand(sim::SimCq& cq, Writer& writer) {
    asking = &writer;
    const auto [place, is_new] = here.emplace(&cq, false);
    if (is_new) {
      engine->schedule(engine->now() + kDelay, &read<Writer>, this, reinterpret_cast<std::uint64_t>(&cq));
    }
    return place->second;
  }
  template <class Writer>
  static void read(void* object, std::uint64_t argument) {
    LostContexts& self = *static_cast<LostContexts*>(object);
    sim::SimCq& cq = *reinterpret_cast<sim::SimCq*>(argument);
    self.here[&cq] = true;
    static_cast<Writer*>(self.asking)->write_delayed(cq);
  }
};

// A completion unit of its own at a node's link, a queue of four entries with two QPs, and another with one.
class DelayedCompletion : public testing::Test {
 protected:
  using Writer = sim::BasicCqeWriter<LostContexts>;

  DelayedCompletion() {
    cq = provider().create_cq(nodes.a.context(), 4, nullptr);
    other_cq = provider().create_cq(nodes.a.context(), 4, nullptr);
    qp = make_qp(cq);
    beside = make_qp(cq);
    elsewhere = make_qp(other_cq);
  }
  ~DelayedCompletion() override {
    for (ibv_qp* const one : {qp, beside, elsewhere}) destroy(one);
    for (ibv_cq* const one : {cq, other_cq}) destroy(one);
  }

  Provider& provider() { return nodes.a.provider(); }
  sim::Nic& nic() { return *sim::as_sim(nodes.a.context()).nic; }

  ibv_qp* make_qp(ibv_cq* queue) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = queue;
    init.cap = QpOptions{}.cap;
    init.qp_type = IBV_QPT_RC;
    return provider().create_qp(nodes.a.pd(), &init);
  }
  // Unless a test has done so.
  void destroy(ibv_qp* one) {
    if (destroyed.insert(one).second) {
      EXPECT_EQ(provider().destroy_qp(one), 0);
    }
  }
  void destroy(ibv_cq* one) {
    if (destroyed.insert(one).second) {
      EXPECT_EQ(provider().destroy_cq(one), 0);
    }
  }
  void reset(ibv_qp* one) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(provider().modify_qp(one, &attr, IBV_QP_STATE), 0);
  }

  void complete(ibv_qp* of, std::uint64_t id) {
    sim::Completion done{};
    done.wr_id = id;
    done.qp = &sim::as_sim(of);
    done.of_send = true;
    writer.complete(sim::as_sim(of).send_completions(), done);
  }
  std::vector<std::uint64_t> poll(ibv_cq* queue) {
    std::vector<ibv_wc> got(8);
    const int taken = ibv_poll_cq(queue, static_cast<int>(got.size()), got.data());
    got.resize(static_cast<std::size_t>(std::max(taken, 0)));
    return ids(got);
  }

  TwoNodes nodes;
  Writer writer{nic().bus(), Bytes(64), LostContexts{&nic().engine()}};
  ibv_cq* cq;
  ibv_cq* other_cq;
  ibv_qp* qp;
  ibv_qp* beside;
  ibv_qp* elsewhere;
  std::set<void*> destroyed;
};

TEST_F(DelayedCompletion, IsSeenWhenTheStateOfTheQueueHasCome) {
  complete(qp, 1);
  nodes.pass(kDelay - Nanos(1));
  EXPECT_THAT(poll(cq), IsEmpty());
  nodes.pass(kLong);
  EXPECT_THAT(poll(cq), ElementsAre(1));
}

TEST_F(DelayedCompletion, HoldsUpThoseBehindItInTheirOrder) {
  complete(qp, 1);
  nodes.pass(kDelay / 2);
  complete(beside, 2);
  complete(qp, 3);
  nodes.pass(kLong);
  complete(qp, 4);
  nodes.pass(kLong);
  EXPECT_THAT(poll(cq), ElementsAre(1, 2, 3, 4));
}

TEST_F(DelayedCompletion, HoldsUpNoOtherQueue) {
  complete(qp, 1);
  nodes.pass(kDelay);
  complete(elsewhere, 2);
  nodes.pass(kDelay / 2);
  EXPECT_THAT(poll(cq), ElementsAre(1));
  EXPECT_THAT(poll(other_cq), IsEmpty());
  nodes.pass(kLong);
  EXPECT_THAT(poll(other_cq), ElementsAre(2));
}

TEST_F(DelayedCompletion, WakesAThreadThatPollsForIt) {
  bool seen = false;
  nodes.cluster.add_thread(0, 60'000, [&](SimNode& node) {
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 0) node.relax();
    seen = wc.wr_id == 1;
  });
  nodes.cluster.at(nodes.cluster.now() + kDelay, [&] { complete(qp, 1); });
  nodes.cluster.run();
  EXPECT_TRUE(seen);
}

TEST_F(DelayedCompletion, MeetsAnArmedQueueWhenItIsWritten) {
  const sim::Arming& arming = static_cast<sim::SimCq*>(cq)->arming;
  complete(qp, 1);
  EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
  nodes.pass(kDelay / 2);
  EXPECT_TRUE(arming.at_nic);  // the doorbell has come, and no event was raised
  nodes.pass(kLong);
  EXPECT_EQ(arming.asked, sim::Notify::none);  // the event was raised
}

TEST_F(DelayedCompletion, LeavesTheQueueWithAQpThatIsDestroyed) {
  complete(qp, 1);
  complete(beside, 2);
  complete(qp, 3);
  destroy(qp);
  nodes.pass(kLong);
  EXPECT_THAT(poll(cq), ElementsAre(2));
}

TEST_F(DelayedCompletion, LeavesTheQueueWithAQpThatIsReset) {
  complete(qp, 1);
  reset(qp);
  complete(qp, 2);
  nodes.pass(kLong);
  EXPECT_THAT(poll(cq), ElementsAre(2));
}

TEST_F(DelayedCompletion, ComesToNothingWhenTheQueueIsDestroyed) {
  complete(elsewhere, 1);
  destroy(elsewhere);
  destroy(other_cq);
  nodes.pass(kLong);
  complete(qp, 2);
  nodes.pass(kLong);
  EXPECT_THAT(poll(cq), ElementsAre(2));
}

TEST_F(DelayedCompletion, CountsInAQueueThatOverruns) {
  for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(cq->cqe) + 1; ++id) complete(qp, id);
  nodes.pass(kLong);
  EXPECT_THAT(poll(cq), ElementsAre(1, 2, 3, 4));  // what came before stays readable
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), -1);
}

}  // namespace
}  // namespace verbscope::test
