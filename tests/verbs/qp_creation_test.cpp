// Creation of QPs: the attributes passed to the device, and errors that name the capability.
#include <gtest/gtest.h>

#include <vector>

#include "tests/verbs/mock_provider.hpp"
#include "tests/verbs/null_rig.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::Return;
using testing::SetErrnoAndReturn;

// A null device with small limits.
struct Small : NullSide {
  Small() : NullSide(64, {.max_qp_wr = 100, .max_sge = 3, .max_inline = 220, .max_qp = 4}) {}
};

TEST(QpCreation, ErrorNamesTheSendQueueLimit) {
  Small null;
  QpOptions options = null.options();
  options.send_depth = 101;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create RC QP on null0: send queue depth 101 requested, the device supports up to 100");
}

TEST(QpCreation, ErrorNamesEveryExceededCapability) {
  Small null;
  QpOptions options = null.options({.transport = Transport::ud});
  options.recv_depth = 512;
  options.send_sge = 4;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create UD QP on null0: receive queue depth 512 requested, the device supports up to 100; "
            "send SGEs 4 requested, the device supports up to 3");
}

TEST(QpCreation, FindsTheInlineLimitByTrials) {
  Small null;
  QpOptions options = null.options({.transport = Transport::uc});
  options.max_inline = 221;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create UC QP on null0: inline data 221 bytes requested, the device supports up to 220 with the other "
            "values as requested");
}

TEST(QpCreation, FindsALimitOfTheCombinationByTrials) {
  // The attributes of the device allow 1000 work requests, but it accepts 300.
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  ON_CALL(mock, create_qp(_, _)).WillByDefault([&](ibv_pd*, ibv_qp_init_attr* attr) {
    errno = ENOMEM;
    return attr->cap.max_send_wr <= 300 ? &mock.qp : nullptr;
  });
  EXPECT_EQ(error_of([&] { Qp(pd, QpOptions{.send_depth = 1000}); }),
            "create RC QP on mock0: send queue depth 1000 requested, the device supports up to 300 with the other "
            "values as requested");
}

TEST(QpCreation, OtherErrorsShowReasonAndRequest) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  EXPECT_CALL(mock, create_qp(_, _)).WillRepeatedly(SetErrnoAndReturn(EPERM, nullptr));
  EXPECT_EQ(error_of([&] { Qp(pd, QpOptions{.max_inline = 16}); }),
            "create RC QP on mock0: Operation not permitted (requested: inline data 16 bytes, send queue depth 128, "
            "receive queue depth 512, SGEs 1 and 1)");
}

TEST(QpCreation, TrialsLeaveNoQp) {
  Small null;  // four QPs at most
  QpOptions options = null.options();
  EXPECT_EQ(largest_inline(null.pd, options), 220);
  std::vector<Qp> qps;
  for (int i = 0; i < 4; ++i) qps.emplace_back(null.pd, options);
  EXPECT_THAT(error_of([&] { Qp(null.pd, options); }), HasSubstr("Cannot allocate memory"));
}

TEST(LargestInline, IsFoundOnAnyDevice) {
  for (const int limit : {0, 1, 63, 64, 65, 956, 1024}) {
    const NullSide null(1, {.max_inline = limit});
    EXPECT_EQ(largest_inline(null.pd, null.options()), limit);
  }
}

TEST(QpCreation, SharedReceiveQueueReplacesTheOwnQueue) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  ibv_qp_init_attr requested{};
  EXPECT_CALL(mock, create_qp(_, _)).WillOnce([&](ibv_pd*, ibv_qp_init_attr* attr) {
    requested = *attr;
    return &mock.qp;
  });
  const Qp qp(pd, QpOptions{.recv_depth = 10, .recv_sge = 2, .srq = &mock.srq});
  EXPECT_EQ(requested.srq, &mock.srq);
  EXPECT_EQ(requested.cap.max_recv_wr, 0u);
  EXPECT_EQ(requested.cap.max_recv_sge, 0u);
  EXPECT_EQ(qp.builder(), nullptr);
}

TEST(QpCreation, BuilderHasEveryOperationOfTheTransport) {
  // IBTA vol. 1, table "Service types and operations".
  constexpr std::uint64_t kUd = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr std::uint64_t kUc = kUd | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  constexpr std::uint64_t kRc =
      kUc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  for (const auto& [transport, operations] :
       {std::pair{Transport::rc, kRc}, {Transport::uc, kUc}, {Transport::ud, kUd}}) {
    MockDevice mock;
    const Device device(mock, "");
    const Pd pd(device);
    ibv_qp_init_attr_ex requested{};
    EXPECT_CALL(mock, create_qp_ex(&mock.context, _)).WillOnce([&](ibv_context*, ibv_qp_init_attr_ex* attr) {
      requested = *attr;
      return &mock.qp;
    });
    EXPECT_CALL(mock, qp_to_qp_ex(&mock.qp)).WillOnce(Return(&mock.qp_ex));
    const Qp qp(pd, QpOptions{.transport = transport, .send_depth = 7, .max_inline = 40, .builder = true});
    EXPECT_EQ(qp.builder(), &mock.qp_ex);
    EXPECT_EQ(requested.comp_mask, unsigned{IBV_QP_INIT_ATTR_PD} | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
    EXPECT_EQ(requested.pd, &mock.pd);
    EXPECT_EQ(requested.qp_type, qp_type(transport));
    EXPECT_EQ(requested.cap.max_send_wr, 7u);
    EXPECT_EQ(requested.cap.max_inline_data, 40u);
    EXPECT_EQ(requested.send_ops_flags, operations);
  }
}

TEST(QpCreation, NamesADeviceWithoutTheBuilderInterface) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  EXPECT_CALL(mock, create_qp_ex(_, _)).WillRepeatedly(SetErrnoAndReturn(ENOSYS, nullptr));
  EXPECT_EQ(error_of([&] { Qp(pd, QpOptions{.builder = true}); }), "not supported by mock0: the ibv_wr_* interface");
}

TEST(QpCreation, ErrorWithABuilderNamesTheExceededCapability) {
  Small null;
  QpOptions options = null.options();
  options.builder = true;
  options.send_depth = 101;
  EXPECT_EQ(error_of([&] { Qp(null.pd, options); }),
            "create RC QP on null0: send queue depth 101 requested, the device supports up to 100");
}

}  // namespace
}  // namespace verbscope
