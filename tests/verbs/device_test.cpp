// Opening a device, errors of object creation, and the order of destruction.
#include <gtest/gtest.h>

#include "tests/verbs/mock_provider.hpp"
#include "verbs/resources.hpp"

namespace verbscope {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::InSequence;
using testing::Return;
using testing::SetErrnoAndReturn;

TEST(Device, EmptyNameIsTheFirstDevice) {
  MockDevice mock;
  EXPECT_CALL(mock, device_names()).WillOnce(Return(std::vector<std::string>{"mock0", "mock1"}));
  const Device device(mock, "");
  EXPECT_EQ(device.name(), "mock0");
  EXPECT_EQ(device.port(), 1);
}

TEST(Device, ColonNamesThePort) {
  MockDevice mock;
  EXPECT_CALL(mock, query_port(&mock.context, 2, _));
  EXPECT_EQ(Device(mock, "mock0:2").port(), 2);
}

TEST(Device, UnknownNameListsTheDevices) {
  MockDevice mock;
  EXPECT_CALL(mock, device_names()).WillOnce(Return(std::vector<std::string>{"mlx5_0", "mlx5_1"}));
  EXPECT_EQ(error_of([&] { Device(mock, "mlx4_0"); }), "no RDMA device \"mlx4_0\": found mlx5_0, mlx5_1");
}

TEST(Device, FailsWithoutADevice) {
  MockDevice mock;
  EXPECT_CALL(mock, device_names()).WillRepeatedly(Return(std::vector<std::string>{}));
  EXPECT_EQ(error_of([&] { Device(mock, ""); }), "no RDMA device found");
  EXPECT_EQ(error_of([&] { Device(mock, "x"); }), "no RDMA device found; requested \"x\"");
}

TEST(Device, RejectsAPortThatIsNoNumber) {
  MockDevice mock;
  for (const char* spec : {"mock0:", "mock0:x", "mock0:0", "mock0:256", "mock0:1x", "mock0:-1"}) {
    EXPECT_THAT(error_of([&] { Device(mock, spec); }), HasSubstr("must be a number from 1 to 255")) << spec;
  }
}

TEST(Device, ClosesTheDeviceIfThePortDoesNotExist) {
  MockDevice mock;
  EXPECT_CALL(mock, close(&mock.context));
  EXPECT_EQ(error_of([&] { Device(mock, "mock0:3"); }), "device mock0 has no port 3: it has ports 1-2");
}

TEST(Device, RejectsAPortThatIsDown) {
  MockDevice mock;
  mock.port.state = IBV_PORT_DOWN;
  EXPECT_CALL(mock, close(&mock.context));
  EXPECT_EQ(error_of([&] { Device(mock, "mock0"); }), "port 1 of device mock0 is not active: its state is down");
}

TEST(Device, OpenErrorNamesDeviceAndReason) {
  MockDevice mock;
  EXPECT_CALL(mock, open("mock0")).WillOnce(SetErrnoAndReturn(EACCES, nullptr));
  EXPECT_CALL(mock, close(_)).Times(0);
  EXPECT_EQ(error_of([&] { Device(mock, "mock0"); }), "open RDMA device mock0: Permission denied");
}

TEST(Cq, NamesTheLimitOfEntries) {
  MockDevice mock;
  const Device device(mock, "");
  EXPECT_CALL(mock, create_cq(_, 5001, _, 0)).WillOnce(SetErrnoAndReturn(EINVAL, nullptr));
  EXPECT_EQ(error_of([&] { Cq(device, 5001); }),
            "create a completion queue of 5001 entries: mock0 supports up to 5000");
}

TEST(Cq, ShowsTheErrnoWithinTheLimits) {
  MockDevice mock;
  const Device device(mock, "");
  EXPECT_CALL(mock, create_cq(_, 10, _, 0)).WillOnce(SetErrnoAndReturn(ENOMEM, nullptr));
  EXPECT_EQ(error_of([&] { Cq(device, 10); }),
            "create a completion queue of 10 entries on mock0: Cannot allocate memory");
}

TEST(Cq, PassesItsChannelToTheDevice) {
  MockDevice mock;
  const Device device(mock, "");
  const CompChannel channel(device);
  EXPECT_CALL(mock, create_cq(_, 10, &mock.channel, 0)).WillOnce(Return(&mock.cq));
  Cq(device, 10, channel.get());
}

TEST(CompChannel, DistinguishesUnsupportedFromFailed) {
  MockDevice mock;
  const Device device(mock, "");
  EXPECT_CALL(mock, create_comp_channel(_))
      .WillOnce(SetErrnoAndReturn(ENOSYS, nullptr))
      .WillOnce(SetErrnoAndReturn(EMFILE, nullptr));
  EXPECT_EQ(error_of([&] { CompChannel channel(device); }), "not supported by mock0: completion events");
  EXPECT_EQ(error_of([&] { CompChannel channel(device); }),
            "create a completion channel on mock0: Too many open files");
}

TEST(Srq, PassesDepthAndSges) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  ibv_srq_init_attr requested{};
  EXPECT_CALL(mock, create_srq(&mock.pd, _)).WillOnce([&](ibv_pd*, ibv_srq_init_attr* attr) {
    requested = *attr;
    return &mock.srq;
  });
  const Srq srq(pd, 100, 2);
  EXPECT_EQ(requested.attr.max_wr, 100u);
  EXPECT_EQ(requested.attr.max_sge, 2u);
}

TEST(Srq, ErrorNeedsNoDeviceInTheContext) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  mock.context.device = nullptr;
  EXPECT_CALL(mock, create_srq(_, _)).WillOnce(SetErrnoAndReturn(ENOSYS, nullptr));
  EXPECT_EQ(error_of([&] { Srq(pd, 16, 1); }), "not supported by the device: shared receive queues");
}

TEST(Srq, ErrorNamesTheLimitsOfTheDevice) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  EXPECT_CALL(mock, create_srq(_, _)).WillRepeatedly(SetErrnoAndReturn(EINVAL, nullptr));
  EXPECT_EQ(error_of([&] { Srq(pd, 16, 1); }), "not supported by mock0: shared receive queues");  // max_srq is 0
  mock.attributes.max_srq = 10;
  mock.attributes.max_srq_wr = 500;
  mock.attributes.max_srq_sge = 3;
  EXPECT_EQ(error_of([&] { Srq(pd, 501, 1); }),
            "create a shared receive queue of depth 501 with 1 SGEs: mock0 supports up to depth 500 and 3 SGEs");
  EXPECT_EQ(error_of([&] { Srq(pd, 16, 1); }),
            "create a shared receive queue of depth 16 with 1 SGEs on mock0: Invalid argument");
}

TEST(InlineRecv, ErrorNamesTheLargestAcceptedSize) {
  MockDevice mock;
  const Device device(mock, "");
  EXPECT_CALL(mock, set_inline_recv(_, _, _, 32)).WillOnce(Return(0)).WillOnce(Return(EOPNOTSUPP));
  EXPECT_EQ(error_of([&] { set_inline_recv(device, Transport::rc, Verb::send, 32); }), "(nothing thrown)");
  EXPECT_EQ(error_of([&] { set_inline_recv(device, Transport::rc, Verb::send, 32); }),
            "not supported by mock0: inline receive of RC send");
  EXPECT_CALL(mock, set_inline_recv(_, _, _, testing::Gt(60u))).WillRepeatedly(Return(EINVAL));
  EXPECT_CALL(mock, set_inline_recv(_, _, _, testing::Le(60u))).WillRepeatedly(Return(0));
  for (const std::uint32_t bytes : {61, 64, 1000}) {
    EXPECT_EQ(error_of([&] { set_inline_recv(device, Transport::rc, Verb::send, bytes); }),
              fmt::format("not supported by mock0: inline receive of {} bytes (up to 60 bytes are supported)", bytes));
  }
}

TEST(Mr, ErrorNamesTheSize) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  EXPECT_CALL(mock, reg_mr(_, _, 4096, _)).WillOnce(SetErrnoAndReturn(ENOMEM, nullptr));
  EXPECT_THAT(error_of([&] { Mr(pd, &mock, 4096); }),
              testing::StartsWith("register 4096 bytes of memory: Cannot allocate memory"));
}

TEST(Ah, ErrorNamesThePath) {
  MockDevice mock;
  const Device device(mock, "");
  const Pd pd(device);
  EXPECT_CALL(mock, create_ah(_, _)).WillOnce(SetErrnoAndReturn(EINVAL, nullptr));
  PathAddress path;
  path.lid = 5;
  EXPECT_EQ(error_of([&] { Ah(pd, path); }), "create an address handle for LID 5: Invalid argument");
}

TEST(Ownership, DestroysChildrenBeforeParents) {
  MockDevice mock;
  const InSequence order;
  EXPECT_CALL(mock, destroy_ah(&mock.ah));
  EXPECT_CALL(mock, destroy_qp(&mock.qp));
  EXPECT_CALL(mock, destroy_cq(&mock.cq));
  EXPECT_CALL(mock, dereg_mr(&mock.mr));
  EXPECT_CALL(mock, dealloc_pd(&mock.pd));
  EXPECT_CALL(mock, close(&mock.context));
  const Device device(mock, "");
  const Pd pd(device);
  const Mr mr(pd, &mock, 1);
  const Cq cq(device, 1);
  const Qp qp(pd, QpOptions{.send_cq = cq.get(), .recv_cq = cq.get()});
  const Ah ah(pd, PathAddress{});
}

TEST(Ownership, DestroysAMovedObjectOnce) {
  MockDevice mock;
  EXPECT_CALL(mock, destroy_cq(&mock.cq)).Times(1);
  const Device device(mock, "");
  Cq first(device, 1);
  const Cq second = std::move(first);
  EXPECT_EQ(second.get(), &mock.cq);
}

TEST(Ownership, AssignmentDestroysBothObjects) {
  MockDevice mock;
  ibv_cq other{};
  const Device device(mock, "");
  EXPECT_CALL(mock, create_cq(_, _, _, 0)).WillOnce(Return(&mock.cq)).WillOnce(Return(&other));
  EXPECT_CALL(mock, destroy_cq(&mock.cq)).Times(1);
  EXPECT_CALL(mock, destroy_cq(&other)).Times(1);
  Cq first(device, 1);
  first = Cq(device, 1);
  EXPECT_EQ(first.get(), &other);
}

}  // namespace
}  // namespace verbscope
