// The states of a QP: which changes are allowed, and what each needs. InfiniBand Architecture Specification 1.3, volume
// 1, sections 10.3.1 (states) and 11.2.4.2 (Modify Queue Pair); ibv_modify_qp(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::Ge;

class States : public EachTransport {
 protected:
  // A QP of a brought to `state`: RESET, INIT, RTR, RTS or ERR.
  ibv_qp* qp_in(ibv_qp_state state) {
    ibv_qp* qp = a.make_qp(type());
    if (state == IBV_QPS_RESET) return qp;
    EXPECT_EQ(modify(a, qp, init()), 0);
    if (state == IBV_QPS_INIT) return qp;
    if (state == IBV_QPS_ERR) {
      EXPECT_EQ(modify(a, qp, to_state(IBV_QPS_ERR)), 0);
      return qp;
    }
    EXPECT_EQ(modify(a, qp, rtr()), 0);
    if (state == IBV_QPS_RTS) {
      EXPECT_EQ(modify(a, qp, rts()), 0);
    }
    return qp;
  }
  Step init() { return to_init(a, type()); }
  Step rtr() { return to_rtr(a, type(), b, 0x100); }
  Step rts() { return to_rts(type()); }
  ibv_qp_attr query(ibv_qp* qp) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr created{};
    EXPECT_EQ(a.verbs().query_qp(qp, &attr, 0x1fffff, &created), 0);
    return attr;
  }
};
VERBSCOPE_EACH_TRANSPORT(States);

TEST_P(States, GoFromResetToReadyToSend) {
  ibv_qp* qp = a.make_qp(type());
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RESET);
  EXPECT_EQ(modify(a, qp, init()), 0);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_INIT);
  EXPECT_EQ(modify(a, qp, rtr()), 0);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RTR);
  EXPECT_EQ(modify(a, qp, rts()), 0);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RTS);
}

TEST_P(States, NoneIsSkipped) {
  ibv_qp* qp = a.make_qp(type());
  EXPECT_EQ(modify(a, qp, rtr()), EINVAL) << "RESET to RTR";
  EXPECT_EQ(modify(a, qp, rts()), EINVAL) << "RESET to RTS";
  EXPECT_EQ(modify(a, qp, init()), 0);
  EXPECT_EQ(modify(a, qp, rts()), EINVAL) << "INIT to RTS";
  EXPECT_EQ(state_of(a, qp), IBV_QPS_INIT);
}

TEST_P(States, NoneIsGoneBackTo) {
  ibv_qp* qp = qp_in(IBV_QPS_RTR);
  EXPECT_EQ(modify(a, qp, init()), EINVAL) << "RTR to INIT";
  EXPECT_EQ(modify(a, qp, rts()), 0);
  EXPECT_EQ(modify(a, qp, init()), EINVAL) << "RTS to INIT";
  EXPECT_EQ(modify(a, qp, rtr()), EINVAL) << "RTS to RTR";
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RTS);
}

TEST_P(States, ErrorIsLeftForResetOnly) {
  ibv_qp* qp = qp_in(IBV_QPS_ERR);
  EXPECT_EQ(modify(a, qp, init()), EINVAL);
  EXPECT_EQ(modify(a, qp, rtr()), EINVAL);
  EXPECT_EQ(modify(a, qp, rts()), EINVAL);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_ERR);
  EXPECT_EQ(modify(a, qp, to_state(IBV_QPS_RESET)), 0);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RESET);
}

TEST_P(States, ErrorIsReachedFromEachState) {
  for (const ibv_qp_state from : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    ibv_qp* qp = qp_in(from);
    EXPECT_EQ(modify(a, qp, to_state(IBV_QPS_ERR)), 0) << "from state " << from;
    EXPECT_EQ(state_of(a, qp), IBV_QPS_ERR);
  }
}

TEST_P(States, ErrorIsReachedFromReset) {
  ibv_qp* qp = qp_in(IBV_QPS_RESET);
  const bool refused = deviates("reset-to-error");
  EXPECT_EQ(modify(a, qp, to_state(IBV_QPS_ERR)), refused ? EINVAL : 0);
  EXPECT_EQ(state_of(a, qp), refused ? IBV_QPS_RESET : IBV_QPS_ERR);
}

TEST_P(States, ResetIsReachedFromEachState) {
  for (const ibv_qp_state from : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    ibv_qp* qp = qp_in(from);
    EXPECT_EQ(modify(a, qp, to_state(IBV_QPS_RESET)), 0) << "from state " << from;
    EXPECT_EQ(state_of(a, qp), IBV_QPS_RESET);
  }
}

TEST_P(States, InitMayBeSetAgain) {
  ibv_qp* qp = qp_in(IBV_QPS_INIT);
  EXPECT_EQ(modify(a, qp, init()), 0);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_INIT);
}

// A QP that was reset has the life of a new one.
TEST_P(States, AQpThatWasResetWorksAgain) {
  Pair pair{a.make_qp(type()), b.make_qp(type())};
  connect(pair);
  marker(pair);
  EXPECT_EQ(modify(a, pair.a, to_state(IBV_QPS_RESET)), 0);
  EXPECT_EQ(modify(b, pair.b, to_state(IBV_QPS_RESET)), 0);
  connect(pair);
  marker(pair);
}

TEST_P(States, ResetForgetsPostedReceives) {
  Pair pair{a.make_qp(type()), b.make_qp(type())};
  connect(pair);
  recv(pair.b, {room(0, 64)}, 66);
  EXPECT_EQ(modify(a, pair.a, to_state(IBV_QPS_RESET)), 0);
  EXPECT_EQ(modify(b, pair.b, to_state(IBV_QPS_RESET)), 0);
  connect(pair);
  marker(pair);  // expects its own RECV to be the first
}

TEST_P(States, AnUnknownPortIsRefused) {
  ibv_qp* qp = a.make_qp(type());
  Step step = init();
  step.attr.port_num = static_cast<std::uint8_t>(a.device().attributes().phys_port_cnt + 1);
  EXPECT_EQ(modify(a, qp, step), EINVAL);
  step.attr.port_num = 0;
  EXPECT_EQ(modify(a, qp, step), EINVAL);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RESET);
}

// The five and three bits of these fields: sections 9.7.6.1.3, 9.7.5.2.8 and 11.2.4.2.
TEST_P(States, QueriesYieldWhatWasSet) {
  LinkOptions options;
  options.timeout = 9;
  options.retries = 3;
  options.rnr_retries = 2;
  options.min_rnr_timer = 7;
  options.max_rd_atomic = 2;
  options.psn = 0xabcde;
  options.access = IBV_ACCESS_REMOTE_WRITE;
  ibv_qp* qp = a.make_qp(type());
  ASSERT_EQ(bring_up(a, qp, b, 0x123, options), 0);
  const ibv_qp_attr attr = query(qp);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.port_num, a.device().port());
  EXPECT_EQ(attr.sq_psn, 0xabcdeu);
  if (datagram()) {
    EXPECT_EQ(attr.qkey, kQkey);
    return;
  }
  EXPECT_EQ(attr.dest_qp_num, 0x123u);
  EXPECT_EQ(attr.rq_psn, 0xabcdeu);
  EXPECT_EQ(attr.path_mtu, a.device().port_attributes().active_mtu);
  EXPECT_EQ(attr.qp_access_flags & kRemoteAccess, unsigned{IBV_ACCESS_REMOTE_WRITE});
  if (type() == IBV_QPT_UC) return;
  EXPECT_EQ(attr.timeout, 9);
  EXPECT_EQ(attr.retry_cnt, 3);
  EXPECT_EQ(attr.rnr_retry, 2);
  EXPECT_EQ(attr.min_rnr_timer, 7);
  EXPECT_EQ(attr.max_rd_atomic, 2);
  EXPECT_EQ(attr.max_dest_rd_atomic, 2);
}

TEST_P(States, QueriesYieldHowTheQpWasMade) {
  QpAsk ask;
  ask.signal_all = true;
  ibv_qp* qp = a.make_qp(type(), ask);
  ibv_qp_attr attr{};
  ibv_qp_init_attr created{};
  ASSERT_EQ(a.verbs().query_qp(qp, &attr, IBV_QP_CAP, &created), 0);
  EXPECT_EQ(created.qp_type, type());
  EXPECT_EQ(created.send_cq, a.send_cq());
  EXPECT_EQ(created.recv_cq, a.recv_cq());
  EXPECT_NE(created.sq_sig_all, 0);
  EXPECT_THAT(created.cap.max_send_wr, Ge(kUsualCap.max_send_wr));
  EXPECT_THAT(created.cap.max_recv_wr, Ge(kUsualCap.max_recv_wr));
  EXPECT_THAT(created.cap.max_send_sge, Ge(kUsualCap.max_send_sge));
  EXPECT_THAT(created.cap.max_recv_sge, Ge(kUsualCap.max_recv_sge));
  EXPECT_THAT(created.cap.max_inline_data, Ge(kUsualCap.max_inline_data));
}

// ibv_modify_qp(3), NOTES: when any attribute is invalid, none is modified, the state included.
TEST_P(States, ARefusedChangeChangesNothing) {
  ibv_qp* qp = qp_in(IBV_QPS_RTR);
  Step step = rts();
  step.attr.sq_psn = 0x777;
  step.mask |= IBV_QP_PORT;  // does not belong here
  step.attr.port_num = a.device().port();
  EXPECT_EQ(modify(a, qp, step), EINVAL);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RTR);
  EXPECT_NE(query(qp).sq_psn, 0x777u);
  EXPECT_EQ(modify(a, qp, rts()), 0);
}

TEST_P(States, AWrongCurrentStateIsRefused) {
  ibv_qp* qp = qp_in(IBV_QPS_RTR);
  Step step = rts();
  step.mask |= IBV_QP_CUR_STATE;
  step.attr.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(modify(a, qp, step), EINVAL);
  EXPECT_EQ(state_of(a, qp), IBV_QPS_RTR);
}

}  // namespace
}  // namespace verbscope::conformance
