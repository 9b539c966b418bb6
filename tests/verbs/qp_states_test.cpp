// The states of QPs: the attributes of each transition, and the rules of the null device.
#include <gtest/gtest.h>

#include <vector>

#include "tests/verbs/mock_provider.hpp"
#include "tests/verbs/null_rig.hpp"

namespace verbscope {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::Return;

// The masks that the three transitions of a QP of `type` pass to modify_qp.
struct Transition {
  ibv_qp_attr attr;
  int mask;
};
std::vector<Transition> transitions(Transport transport, const QpInit& init, const QpReceive& receive,
                                    const QpSend& send) {
  MockDevice mock;
  std::vector<Transition> seen;
  ON_CALL(mock, modify_qp(&mock.qp, _, _)).WillByDefault([&](ibv_qp*, ibv_qp_attr* attr, int mask) {
    seen.push_back({*attr, mask});
    return 0;
  });
  const Device device(mock, "");
  const Pd pd(device);
  Qp qp(pd, QpOptions{.transport = transport});
  qp.to_init(init);
  qp.to_rtr(receive);
  qp.to_rts(send);
  return seen;
}

// The masks are those of the kernel's table: drivers/infiniband/core/verbs.c, qp_state_table.
TEST(Transitions, RcSetsAllAttributes) {
  QpReceive receive;
  receive.path = {.port = 2,
                  .global = true,
                  .lid = 9,
                  .gid = {},
                  .gid_index = 3,
                  .service_level = 5,
                  .traffic_class = 0x68,
                  .flow_label = 0xabcde};
  receive.path.gid.raw[15] = 0xab;
  receive.mtu = IBV_MTU_4096;
  receive.peer_qpn = 77;
  receive.peer_psn = 1234;
  receive.max_dest_rd_atomic = 16;
  const QpSend send{.psn = 99, .timeout = 10, .retry_count = 3, .rnr_retry = 1, .max_rd_atomic = 8};
  const auto seen = transitions(Transport::rc, QpInit{.port = 2, .pkey_index = 6}, receive, send);
  ASSERT_EQ(seen.size(), 3u);

  EXPECT_EQ(seen[0].mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(seen[0].attr.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(seen[0].attr.port_num, 2);
  EXPECT_EQ(seen[0].attr.pkey_index, 6);
  EXPECT_EQ(seen[0].attr.qp_access_flags,
            unsigned{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

  EXPECT_EQ(seen[1].mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  EXPECT_EQ(seen[1].attr.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(seen[1].attr.dest_qp_num, 77u);
  EXPECT_EQ(seen[1].attr.rq_psn, 1234u);
  EXPECT_EQ(seen[1].attr.path_mtu, IBV_MTU_4096);
  EXPECT_EQ(seen[1].attr.max_dest_rd_atomic, 16);
  EXPECT_EQ(seen[1].attr.ah_attr.dlid, 9);
  EXPECT_EQ(seen[1].attr.ah_attr.port_num, 2);
  EXPECT_EQ(seen[1].attr.ah_attr.is_global, 1);
  EXPECT_EQ(seen[1].attr.ah_attr.grh.sgid_index, 3);
  EXPECT_EQ(seen[1].attr.ah_attr.sl, 5);
  EXPECT_EQ(seen[1].attr.ah_attr.grh.traffic_class, 0x68);
  EXPECT_EQ(seen[1].attr.ah_attr.grh.flow_label, 0xabcdeu);
  EXPECT_EQ(seen[1].attr.ah_attr.grh.dgid.raw[15], 0xab);

  EXPECT_EQ(seen[2].mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_MAX_QP_RD_ATOMIC);
  EXPECT_EQ(seen[2].attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(seen[2].attr.sq_psn, 99u);
  EXPECT_EQ(seen[2].attr.timeout, 10);
  EXPECT_EQ(seen[2].attr.retry_cnt, 3);
  EXPECT_EQ(seen[2].attr.rnr_retry, 1);
  EXPECT_EQ(seen[2].attr.max_rd_atomic, 8);
}

TEST(Transitions, UcSetsNoResponderOrRetryAttributes) {
  const auto seen = transitions(Transport::uc, {}, {}, {.psn = 5});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].attr.qp_access_flags, unsigned{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(seen[1].mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
  EXPECT_EQ(seen[1].attr.ah_attr.is_global, 0);
  EXPECT_EQ(seen[2].mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

TEST(Transitions, UdSetsOnlyQkeyAndPsn) {
  const auto seen = transitions(Transport::ud, {.qkey = 0x1234}, {}, {.psn = 5});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  EXPECT_EQ(seen[0].attr.qkey, 0x1234u);
  EXPECT_EQ(seen[1].mask, IBV_QP_STATE);
  EXPECT_EQ(seen[2].mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
  EXPECT_EQ(seen[2].attr.sq_psn, 5u);
}

// Delay and timeout are both 4.096 us * 2^n: one more is twice the time (IBTA vol. 1, "Local ACK Timeout").
TEST(AckTimeout, IsTwiceTheDeviceDelayAndAtLeastTheDefault) {
  EXPECT_EQ(ack_timeout(0), kAckTimeout);
  EXPECT_EQ(ack_timeout(13), 14);
  EXPECT_EQ(ack_timeout(14), 15);
  EXPECT_EQ(ack_timeout(15), 16);
  EXPECT_EQ(ack_timeout(30), 31);
  EXPECT_EQ(ack_timeout(31), 31);
}

TEST(Transitions, ErrorsNameTheQpAndTheTransition) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  Qp qp(pd, QpOptions{.transport = Transport::rc});
  EXPECT_CALL(mock, modify_qp(_, _, _)).WillRepeatedly(Return(EINVAL));
  EXPECT_EQ(error_of([&] { qp.to_init({}); }), "move RC QP 42 from RESET to INIT: Invalid argument");
  QpReceive receive;
  receive.path.lid = 3;
  receive.peer_qpn = 17;
  EXPECT_EQ(error_of([&] { qp.to_rtr(receive); }),
            "move RC QP 42 from INIT to RTR (peer QP 17, LID 3): Invalid argument");
  EXPECT_EQ(error_of([&] { qp.to_rts({}); }), "move RC QP 42 from RTR to RTS: Invalid argument");
  EXPECT_EQ(error_of([&] { qp.to_error(); }), "move RC QP 42 to ERROR: Invalid argument");
}

class NullStates : public testing::TestWithParam<Transport> {};

TEST_P(NullStates, AllowsRtsAndError) {
  NullSide null;
  Qp qp(null.pd, null.options({.transport = GetParam()}));
  EXPECT_EQ(qp.state(), IBV_QPS_RESET);
  qp.to_init({});
  EXPECT_EQ(qp.state(), IBV_QPS_INIT);
  qp.to_rtr({});
  EXPECT_EQ(qp.state(), IBV_QPS_RTR);
  qp.to_rts({});
  EXPECT_EQ(qp.state(), IBV_QPS_RTS);
  qp.to_error();
  EXPECT_EQ(qp.state(), IBV_QPS_ERR);
}

TEST_P(NullStates, RejectsSkippedSteps) {
  NullSide null;
  Qp qp(null.pd, null.options({.transport = GetParam()}));
  EXPECT_THAT(error_of([&] { qp.to_rts({}); }), HasSubstr("Invalid argument"));
  EXPECT_THAT(error_of([&] { qp.to_rtr({}); }), HasSubstr("Invalid argument"));
  qp.to_init({});
  EXPECT_THAT(error_of([&] { qp.to_rts({}); }), HasSubstr("Invalid argument"));
  EXPECT_EQ(qp.state(), IBV_QPS_INIT);
}

TEST_P(NullStates, RejectsMissingAndForeignAttributes) {
  NullSide null;
  Qp qp(null.pd, null.options({.transport = GetParam()}));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(null.provider.modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  const int complete = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                       (GetParam() == Transport::ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(null.provider.modify_qp(qp.get(), &attr, complete | IBV_QP_SQ_PSN), EINVAL);
  EXPECT_EQ(null.provider.modify_qp(qp.get(), &attr, complete), 0);
}

TEST_P(NullStates, RtsAllowsOnlyTheAttributesOfTheKernelTable) {
  NullSide null;
  const Transport transport = GetParam();
  Qp qp(null.pd, null.options({.transport = transport}));
  bring_up(qp);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  const auto accepts = [&](int mask) { return null.provider.modify_qp(qp.get(), &attr, IBV_QP_STATE | mask) == 0; };
  // drivers/infiniband/core/verbs.c, qp_state_table, RTS to RTS.
  EXPECT_TRUE(accepts(0));
  EXPECT_TRUE(accepts(IBV_QP_CUR_STATE));
  EXPECT_EQ(accepts(IBV_QP_QKEY), transport == Transport::ud);
  EXPECT_EQ(accepts(IBV_QP_ACCESS_FLAGS), transport != Transport::ud);
  EXPECT_EQ(accepts(IBV_QP_MIN_RNR_TIMER), transport == Transport::rc);
  for (const int mask : {int{IBV_QP_SQ_PSN}, int{IBV_QP_DEST_QPN}, int{IBV_QP_TIMEOUT}, int{IBV_QP_PORT}}) {
    EXPECT_FALSE(accepts(mask)) << mask;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, NullStates, testing::Values(Transport::rc, Transport::uc, Transport::ud),
                         [](const auto& case_) { return std::string(to_string(case_.param)); });

}  // namespace
}  // namespace verbscope
