// The control path: which objects can be created, changed and destroyed, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;

TEST(Device, HasPortsOfProfile) {
  SimCluster cluster(load_profile("cib"), 2, 1);
  Provider& provider = cluster.provider(0);
  EXPECT_THAT(provider.device_names(), ElementsAre("sim0"));
  errno = 0;
  EXPECT_EQ(provider.open("mlx5_0"), nullptr);
  EXPECT_EQ(errno, ENODEV);
  ibv_context* context = provider.open("sim0");
  ASSERT_NE(context, nullptr);
  ibv_device_attr device{};
  ASSERT_EQ(provider.query_device(context, &device), 0);
  EXPECT_EQ(device.phys_port_cnt, 2);
  ibv_port_attr port{};
  for (const std::uint8_t number : {std::uint8_t{1}, std::uint8_t{2}}) {
    ASSERT_EQ(provider.query_port(context, number, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
    EXPECT_NE(port.lid, 0);
  }
  EXPECT_EQ(provider.query_port(context, 0, &port), EINVAL);
  EXPECT_EQ(provider.query_port(context, 3, &port), EINVAL);
  ibv_gid_entry gid{};
  EXPECT_EQ(provider.query_gid(context, 1, 0, &gid), 0);
  EXPECT_EQ(provider.query_gid(context, 1, 1, &gid), EINVAL);
  EXPECT_EQ(provider.close(context), 0);
}

TEST(Device, NodesAndPortsHaveDifferentAddresses) {
  TwoNodes nodes;
  ibv_gid_entry gids[4];
  nodes.a.provider().query_gid(nodes.a.context(), 1, 0, &gids[0]);
  nodes.a.provider().query_gid(nodes.a.context(), 2, 0, &gids[1]);
  nodes.b.provider().query_gid(nodes.b.context(), 1, 0, &gids[2]);
  nodes.b.provider().query_gid(nodes.b.context(), 2, 0, &gids[3]);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < i; ++j) EXPECT_NE(std::memcmp(&gids[i].gid, &gids[j].gid, 16), 0);
  }
  ibv_port_attr of_a{};
  ibv_port_attr of_b{};
  nodes.a.provider().query_port(nodes.a.context(), 1, &of_a);
  nodes.b.provider().query_port(nodes.b.context(), 1, &of_b);
  EXPECT_NE(of_a.lid, of_b.lid);
}

TEST(Destruction, ParentsAreBusyUntilChildrenAreDestroyed) {
  SimCluster cluster(load_profile("cib"), 2, 1);
  Provider& provider = cluster.provider(0);
  ibv_context* context = provider.open("sim0");
  ibv_pd* pd = provider.alloc_pd(context);
  EXPECT_EQ(provider.close(context), EBUSY);
  std::vector<char> memory(64);
  ibv_mr* mr = provider.reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(provider.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(provider.dereg_mr(mr), 0);
  ibv_ah_attr address{};
  address.dlid = 2;
  address.port_num = 1;
  ibv_ah* ah = provider.create_ah(pd, &address);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(provider.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(provider.destroy_ah(ah), 0);
  ibv_cq* send_cq = provider.create_cq(context, 16, nullptr, 0);
  ibv_cq* recv_cq = provider.create_cq(context, 16, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = send_cq;
  init.recv_cq = recv_cq;
  init.qp_type = IBV_QPT_UD;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  ibv_qp* qp = provider.create_qp(pd, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(provider.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(provider.destroy_cq(send_cq), EBUSY);
  EXPECT_EQ(provider.destroy_cq(recv_cq), EBUSY);
  EXPECT_EQ(provider.destroy_qp(qp), 0);
  EXPECT_EQ(provider.dealloc_pd(pd), 0);
  EXPECT_EQ(provider.close(context), EBUSY);
  EXPECT_EQ(provider.destroy_cq(send_cq), 0);
  EXPECT_EQ(provider.destroy_cq(recv_cq), 0);
  EXPECT_EQ(provider.close(context), 0);
}

TEST(Creation, RefusesValuesAboveDeviceLimits) {
  TwoNodes nodes;
  ibv_device_attr device{};
  nodes.a.provider().query_device(nodes.a.context(), &device);
  const auto try_qp = [&](auto change) {
    ibv_qp_init_attr init{};
    init.send_cq = nodes.a.send_cq();
    init.recv_cq = nodes.a.recv_cq();
    init.qp_type = IBV_QPT_RC;
    init.cap = QpOptions{}.cap;
    change(init);
    errno = 0;
    ibv_qp* qp = nodes.a.provider().create_qp(nodes.a.pd(), &init);
    if (qp == nullptr) return errno;
    nodes.a.provider().destroy_qp(qp);
    return 0;
  };
  const auto wr = static_cast<std::uint32_t>(device.max_qp_wr);
  const auto sge = static_cast<std::uint32_t>(device.max_sge);
  EXPECT_EQ(try_qp([](auto&) {}), 0);
  EXPECT_EQ(try_qp([&](auto& init) { init.cap.max_send_wr = wr; }), 0);
  EXPECT_EQ(try_qp([&](auto& init) { init.cap.max_send_wr = wr + 1; }), EINVAL);
  EXPECT_EQ(try_qp([&](auto& init) { init.cap.max_recv_wr = wr + 1; }), EINVAL);
  EXPECT_EQ(try_qp([&](auto& init) { init.cap.max_send_sge = sge + 1; }), EINVAL);
  EXPECT_EQ(try_qp([&](auto& init) { init.cap.max_recv_sge = sge + 1; }), EINVAL);
  EXPECT_EQ(try_qp([&](auto& init) { init.cap.max_inline_data = 513; }), EINVAL);  // cib: 512
  EXPECT_EQ(try_qp([&](auto& init) { init.send_cq = nullptr; }), EINVAL);
  EXPECT_EQ(try_qp([&](auto& init) { init.qp_type = IBV_QPT_RAW_PACKET; }), EOPNOTSUPP);
  EXPECT_EQ(nodes.a.provider().create_cq(nodes.a.context(), 0, nullptr, 0), nullptr);
  EXPECT_EQ(nodes.a.provider().create_cq(nodes.a.context(), device.max_cqe + 1, nullptr, 0), nullptr);
  ibv_ah_attr address{};
  address.port_num = 1;
  EXPECT_EQ(nodes.a.provider().create_ah(nodes.a.pd(), &address), nullptr) << "no LID";
  address.dlid = 3;
  EXPECT_EQ(nodes.a.provider().create_ah(nodes.a.pd(), &address), nullptr) << "no such node";
  address = {.grh = {}, .dlid = 1, .sl = 0, .src_path_bits = 0, .static_rate = 0, .is_global = 0, .port_num = 3};
  EXPECT_EQ(nodes.a.provider().create_ah(nodes.a.pd(), &address), nullptr) << "no such port";
}

TEST(Registration, RemoteWriteRequiresLocalWrite) {
  TwoNodes nodes;
  errno = 0;
  EXPECT_EQ(nodes.a.provider().reg_mr(nodes.a.pd(), nodes.a.memory(), 64, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

class States : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, States, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(States, AnAbsentAttributeIsRefused) {
  TwoNodes nodes;
  ibv_qp* qp = nodes.a.make_qp(GetParam());
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  EXPECT_EQ(nodes.a.provider().modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), EINVAL);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
}

TEST_P(States, ValuesOutOfRangeAreRefused) {
  const auto with = [](const QpOptions& options, int to) {
    TwoNodes nodes;
    return bring_up(nodes.a, nodes.a.make_qp(GetParam()), options, to, 0x100);
  };
  EXPECT_EQ(with({.port = 1}, 1), 0);
  if (GetParam() != IBV_QPT_UD) {
    EXPECT_EQ(with({.mtu = static_cast<ibv_mtu>(0)}, 1), EINVAL);
    EXPECT_EQ(with({.mtu = static_cast<ibv_mtu>(6)}, 1), EINVAL);
    EXPECT_EQ(with({.mtu = static_cast<ibv_mtu>(7)}, 1), EINVAL);
    EXPECT_EQ(with({}, 2), EINVAL) << "no such node";
  }
  if (GetParam() == IBV_QPT_RC) {
    // Five bits: InfiniBand Architecture Specification 1.3, volume 1, section 9.7.6.1.3.
    EXPECT_EQ(with({.timeout = 31}, 1), 0);
    EXPECT_EQ(with({.timeout = 32}, 1), EINVAL);
  }
}

TEST_P(States, QueryReturnsSetValues) {
  TwoNodes nodes;
  const QpOptions options{.port = 2, .qkey = 77, .timeout = 9, .retries = 3, .rnr_retries = 2, .mtu = IBV_MTU_1024};
  ibv_qp* qp = nodes.a.make_qp(GetParam(), options);
  ASSERT_EQ(bring_up(nodes.a, qp, options, 1, 0x123), 0);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(nodes.a.provider().query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.port_num, 2);
  EXPECT_EQ(attr.sq_psn, 0x1234u);
  EXPECT_EQ(init.qp_type, GetParam());
  EXPECT_EQ(init.cap.max_send_wr, 64u);
  EXPECT_EQ(init.cap.max_inline_data, 256u);
  if (GetParam() == IBV_QPT_UD) {
    EXPECT_EQ(attr.qkey, 77u);
    return;
  }
  EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attr.dest_qp_num, 0x123u);
  EXPECT_EQ(attr.rq_psn, 0x1234u);
  if (GetParam() == IBV_QPT_RC) {
    EXPECT_EQ(attr.timeout, 9);
    EXPECT_EQ(attr.retry_cnt, 3);
    EXPECT_EQ(attr.rnr_retry, 2);
  }
}

TEST(Threads, TakeOneCoreEach) {
  SimCluster cluster(load_profile("cib"), 1, 1);
  EXPECT_EQ(cluster.cores(), 14);
  cluster.add_thread(0, 13, [](SimNode&) {});
  EXPECT_THROW(cluster.add_thread(0, 13, [](SimNode&) {}), std::exception);
  EXPECT_THROW(cluster.add_thread(0, 14, [](SimNode&) {}), std::exception);
  EXPECT_THROW(cluster.add_thread(0, -1, [](SimNode&) {}), std::exception);
  EXPECT_THROW(cluster.add_thread(1, 0, [](SimNode&) {}), std::exception);
  cluster.run();
}

}  // namespace
}  // namespace verbscope::test
