// Queue pairs: refusals that name the capability, what each transition asks for, and the null device's state rules.
#include <gtest/gtest.h>

#include <optional>

#include "tests/verbs/mock_provider.hpp"
#include "verbs/null_provider.hpp"
#include "verbs/resources.hpp"

namespace verbscope {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::Return;
using testing::SetErrnoAndReturn;

// A null device with small limits.
struct Small {
  NullProvider provider{NullLimits{.max_qp_wr = 100, .max_sge = 3, .max_inline = 220, .max_qp = 4}};
  Device device{provider, ""};
  Pd pd{device};
  Cq cq{device, 64};

  QpOptions options(ibv_qp_type type = IBV_QPT_RC) {
    QpOptions made;
    made.type = type;
    made.send_cq = made.recv_cq = cq.get();
    made.send_depth = made.recv_depth = 16;
    return made;
  }
};

TEST(QpCreation, TooDeepSendQueueSaysWhatTheDeviceOffers) {
  Small null;
  QpOptions options = null.options();
  options.send_depth = 101;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create RC QP on null0: send queue depth 101 asked, the device offers 100");
}

TEST(QpCreation, EveryCapabilityBeyondTheDeviceIsNamed) {
  Small null;
  QpOptions options = null.options(IBV_QPT_UD);
  options.recv_depth = 512;
  options.send_sge = 4;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create UD QP on null0: receive queue depth 512 asked, the device offers 100; "
            "send SGEs 4 asked, the device offers 3");
}

TEST(QpCreation, InlineLimitIsFoundByAsking) {
  Small null;
  QpOptions options = null.options(IBV_QPT_UC);
  options.max_inline = 221;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create UC QP on null0: inline data 221 bytes asked, the device offers 220 with the rest as asked");
}

TEST(QpCreation, DepthThatOnlyTheCombinationForbidsIsFoundByAsking) {
  // A device that says 1000 work requests, and takes 300 of this kind.
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  ON_CALL(mock, create_qp(_, _)).WillByDefault([&](ibv_pd*, ibv_qp_init_attr* attr) {
    errno = ENOMEM;
    return attr->cap.max_send_wr <= 300 ? &mock.qp : nullptr;
  });
  EXPECT_EQ(error_of([&] { Qp(pd, QpOptions{.send_depth = 1000}); }),
            "create RC QP on mock0: send queue depth 1000 asked, the device offers 300 with the rest as asked");
}

TEST(QpCreation, RefusalForAnotherReasonGivesItAndWhatWasAsked) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  EXPECT_CALL(mock, create_qp(_, _)).WillRepeatedly(SetErrnoAndReturn(EPERM, nullptr));
  EXPECT_EQ(error_of([&] { Qp(pd, QpOptions{.max_inline = 16}); }),
            "create RC QP on mock0: Operation not permitted (asked: inline data 16 bytes, send queue depth 128, "
            "receive queue depth 512, SGEs 1 and 1)");
}

TEST(QpCreation, AskingLeavesNoQpBehind) {
  Small null;  // four QPs at most
  QpOptions options = null.options();
  EXPECT_EQ(largest_inline(null.pd, options), 220);
  std::vector<Qp> qps;
  for (int i = 0; i < 4; ++i) qps.emplace_back(null.pd, options);
  EXPECT_THAT(error_of([&] { Qp(null.pd, options); }), HasSubstr("Cannot allocate memory"));
}

TEST(LargestInline, OfAnyDevice) {
  for (const int limit : {0, 1, 63, 64, 65, 956, 1024}) {
    NullProvider provider(NullLimits{.max_inline = limit});
    const Device device(provider, "");
    const Pd pd(device);
    const Cq cq(device, 1);
    EXPECT_EQ(largest_inline(pd, QpOptions{.send_cq = cq.get(), .recv_cq = cq.get()}), limit);
  }
}

TEST(QpCreation, ASharedReceiveQueueTakesThePlaceOfTheQpsOwn) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  ibv_qp_init_attr asked{};
  EXPECT_CALL(mock, create_qp(_, _)).WillOnce([&](ibv_pd*, ibv_qp_init_attr* attr) {
    asked = *attr;
    return &mock.qp;
  });
  const Qp qp(pd, QpOptions{.recv_depth = 10, .recv_sge = 2, .srq = &mock.srq});
  EXPECT_EQ(asked.srq, &mock.srq);
  EXPECT_EQ(asked.cap.max_recv_wr, 0u);
  EXPECT_EQ(asked.cap.max_recv_sge, 0u);
  EXPECT_EQ(qp.builder(), nullptr);
}

TEST(QpCreation, ABuilderIsForEveryOperationOfTheTransport) {
  // IBTA vol. 1, table "Service types and operations".
  constexpr std::uint64_t kUd = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr std::uint64_t kUc = kUd | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  constexpr std::uint64_t kRc =
      kUc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  for (const auto& [type, operations] : {std::pair{IBV_QPT_RC, kRc}, {IBV_QPT_UC, kUc}, {IBV_QPT_UD, kUd}}) {
    MockDevice mock;
    const Device device(mock, "");
    const Pd pd(device);
    ibv_qp_init_attr_ex asked{};
    EXPECT_CALL(mock, create_qp_ex(&mock.context, _)).WillOnce([&](ibv_context*, ibv_qp_init_attr_ex* attr) {
      asked = *attr;
      return &mock.qp;
    });
    EXPECT_CALL(mock, qp_to_qp_ex(&mock.qp)).WillOnce(Return(&mock.qp_ex));
    const Qp qp(pd, QpOptions{.type = type, .send_depth = 7, .max_inline = 40, .builder = true});
    EXPECT_EQ(qp.builder(), &mock.qp_ex);
    EXPECT_EQ(asked.comp_mask, unsigned{IBV_QP_INIT_ATTR_PD} | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
    EXPECT_EQ(asked.pd, &mock.pd);
    EXPECT_EQ(asked.qp_type, type);
    EXPECT_EQ(asked.cap.max_send_wr, 7u);
    EXPECT_EQ(asked.cap.max_inline_data, 40u);
    EXPECT_EQ(asked.send_ops_flags, operations);
  }
}

TEST(QpCreation, ADeviceWithoutTheBuilderInterfaceIsNamed) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  EXPECT_CALL(mock, create_qp_ex(_, _)).WillRepeatedly(SetErrnoAndReturn(ENOSYS, nullptr));
  EXPECT_EQ(error_of([&] { Qp(pd, QpOptions{.builder = true}); }), "not supported by mock0: the ibv_wr_* interface");
}

TEST(QpCreation, ARefusalThatIsNotTheBuildersNamesItsReason) {
  Small null;
  QpOptions options = null.options();
  options.builder = true;
  options.send_depth = 101;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create RC QP on null0: send queue depth 101 asked, the device offers 100");
}

// What the three transitions of a QP of `type` pass to modify_qp.
struct Transition {
  ibv_qp_attr attr;
  int mask;
};
std::vector<Transition> transitions(ibv_qp_type type, const QpInit& init, const QpReceive& receive,
                                    const QpSend& send) {
  MockDevice mock;
  std::vector<Transition> seen;
  ON_CALL(mock, modify_qp(&mock.qp, _, _)).WillByDefault([&](ibv_qp*, ibv_qp_attr* attr, int mask) {
    seen.push_back({*attr, mask});
    return 0;
  });
  const Device device(mock, "");
  const Pd pd(device);
  Qp qp(pd, QpOptions{.type = type});
  qp.to_init(init);
  qp.to_rtr(receive);
  qp.to_rts(send);
  return seen;
}

// The masks are those of the kernel's table: drivers/infiniband/core/verbs.c, qp_state_table.
TEST(Transitions, RcCarriesEverything) {
  QpReceive receive;
  receive.path = {.port = 2, .global = true, .lid = 9, .gid = {}, .gid_index = 3, .service_level = 0};
  receive.path.gid.raw[15] = 0xab;
  receive.mtu = IBV_MTU_4096;
  receive.peer_qpn = 77;
  receive.peer_psn = 1234;
  receive.max_dest_rd_atomic = 16;
  const QpSend send{.psn = 99, .timeout = 10, .retry_count = 3, .rnr_retry = 1, .max_rd_atomic = 8};
  const auto seen = transitions(IBV_QPT_RC, QpInit{.port = 2}, receive, send);
  ASSERT_EQ(seen.size(), 3u);

  EXPECT_EQ(seen[0].mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(seen[0].attr.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(seen[0].attr.port_num, 2);
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

TEST(Transitions, UcHasNoResponderNorRetries) {
  const auto seen = transitions(IBV_QPT_UC, {}, {}, {.psn = 5});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].attr.qp_access_flags, unsigned{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(seen[1].mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
  EXPECT_EQ(seen[1].attr.ah_attr.is_global, 0);
  EXPECT_EQ(seen[2].mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

TEST(Transitions, UdHasOnlyTheQkeyAndThePsn) {
  const auto seen = transitions(IBV_QPT_UD, {.qkey = 0x1234}, {}, {.psn = 5});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  EXPECT_EQ(seen[0].attr.qkey, 0x1234u);
  EXPECT_EQ(seen[1].mask, IBV_QP_STATE);
  EXPECT_EQ(seen[2].mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
  EXPECT_EQ(seen[2].attr.sq_psn, 5u);
}

TEST(Transitions, ErrorsNameTheQpAndTheTransition) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  Qp qp(pd, QpOptions{.type = IBV_QPT_RC});
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

class NullStates : public testing::TestWithParam<ibv_qp_type> {};

TEST_P(NullStates, TheWayToRtsAndToError) {
  Small null;
  Qp qp(null.pd, null.options(GetParam()));
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

TEST_P(NullStates, NoStepIsSkipped) {
  Small null;
  Qp qp(null.pd, null.options(GetParam()));
  EXPECT_THAT(error_of([&] { qp.to_rts({}); }), HasSubstr("Invalid argument"));
  EXPECT_THAT(error_of([&] { qp.to_rtr({}); }), HasSubstr("Invalid argument"));
  qp.to_init({});
  EXPECT_THAT(error_of([&] { qp.to_rts({}); }), HasSubstr("Invalid argument"));
  EXPECT_EQ(qp.state(), IBV_QPS_INIT);
}

TEST_P(NullStates, MissingAndForeignAttributesAreRefused) {
  Small null;
  Qp qp(null.pd, null.options(GetParam()));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(null.provider.modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  const int complete =
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (GetParam() == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(null.provider.modify_qp(qp.get(), &attr, complete | IBV_QP_SQ_PSN), EINVAL);
  EXPECT_EQ(null.provider.modify_qp(qp.get(), &attr, complete), 0);
}

TEST_P(NullStates, AWorkingQpKeepsItsConnection) {
  Small null;
  const ibv_qp_type type = GetParam();
  Qp qp(null.pd, null.options(type));
  qp.to_init({});
  qp.to_rtr({});
  qp.to_rts({});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  const auto accepts = [&](int mask) { return null.provider.modify_qp(qp.get(), &attr, IBV_QP_STATE | mask) == 0; };
  // drivers/infiniband/core/verbs.c, qp_state_table, RTS to RTS.
  EXPECT_TRUE(accepts(0));
  EXPECT_TRUE(accepts(IBV_QP_CUR_STATE));
  EXPECT_EQ(accepts(IBV_QP_QKEY), type == IBV_QPT_UD);
  EXPECT_EQ(accepts(IBV_QP_ACCESS_FLAGS), type != IBV_QPT_UD);
  EXPECT_EQ(accepts(IBV_QP_MIN_RNR_TIMER), type == IBV_QPT_RC);
  for (const int mask : {int{IBV_QP_SQ_PSN}, int{IBV_QP_DEST_QPN}, int{IBV_QP_TIMEOUT}, int{IBV_QP_PORT}}) {
    EXPECT_FALSE(accepts(mask)) << mask;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, NullStates, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& case_) { return qp_type_name(case_.param); });

}  // namespace
}  // namespace verbscope
