// A mock of Provider, and the message of an expected Error.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "common/error.hpp"
#include "verbs/provider.hpp"

namespace verbscope {

class MockProvider : public Provider {
 public:
  MOCK_METHOD(std::vector<std::string>, device_names, (), (override));
  MOCK_METHOD(ibv_context*, open, (const std::string&), (override));
  MOCK_METHOD(int, close, (ibv_context*), (override));
  MOCK_METHOD(int, set_inline_recv, (ibv_context*, Transport, Verb, std::uint32_t), (override));
  MOCK_METHOD(int, set_doorbell_registers, (const std::string&, std::uint32_t), (override));
  MOCK_METHOD(int, query_device, (ibv_context*, ibv_device_attr*), (override));
  MOCK_METHOD(int, query_port, (ibv_context*, std::uint8_t, ibv_port_attr*), (override));
  MOCK_METHOD(int, query_gid, (ibv_context*, std::uint8_t, std::uint32_t, ibv_gid_entry*), (override));
  MOCK_METHOD(ibv_pd*, alloc_pd, (ibv_context*), (override));
  MOCK_METHOD(int, dealloc_pd, (ibv_pd*), (override));
  MOCK_METHOD(ibv_td*, alloc_td, (ibv_context*), (override));
  MOCK_METHOD(int, dealloc_td, (ibv_td*), (override));
  MOCK_METHOD(ibv_pd*, alloc_parent_domain, (ibv_pd*, ibv_td*), (override));
  MOCK_METHOD(ibv_mr*, reg_mr, (ibv_pd*, void*, std::size_t, int), (override));
  MOCK_METHOD(int, dereg_mr, (ibv_mr*), (override));
  MOCK_METHOD(ibv_comp_channel*, create_comp_channel, (ibv_context*), (override));
  MOCK_METHOD(int, destroy_comp_channel, (ibv_comp_channel*), (override));
  MOCK_METHOD(ibv_cq*, create_cq, (ibv_context*, int, ibv_comp_channel*, int), (override));
  MOCK_METHOD(int, destroy_cq, (ibv_cq*), (override));
  MOCK_METHOD(ibv_srq*, create_srq, (ibv_pd*, ibv_srq_init_attr*), (override));
  MOCK_METHOD(int, query_srq, (ibv_srq*, ibv_srq_attr*), (override));
  MOCK_METHOD(int, destroy_srq, (ibv_srq*), (override));
  MOCK_METHOD(ibv_qp*, create_qp, (ibv_pd*, ibv_qp_init_attr*), (override));
  MOCK_METHOD(ibv_qp*, create_qp_ex, (ibv_context*, ibv_qp_init_attr_ex*), (override));
  MOCK_METHOD(ibv_qp_ex*, qp_to_qp_ex, (ibv_qp*), (override));
  MOCK_METHOD(int, modify_qp, (ibv_qp*, ibv_qp_attr*, int), (override));
  MOCK_METHOD(int, query_qp, (ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*), (override));
  MOCK_METHOD(int, destroy_qp, (ibv_qp*), (override));
  MOCK_METHOD(ibv_ah*, create_ah, (ibv_pd*, ibv_ah_attr*), (override));
  MOCK_METHOD(int, destroy_ah, (ibv_ah*), (override));
};

// The message of the Error that `action` throws; "(nothing thrown)" if it throws none.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing thrown)";
}

// A mock with the device "mock0", which has an active InfiniBand port. Each kind of object exists once.
class MockDevice : public testing::NiceMock<MockProvider> {
 public:
  MockDevice() {
    using testing::_;
    using testing::Return;
    std::snprintf(device.name, sizeof device.name, "mock0");
    context.device = &device;
    pd.context = &context;
    attributes.phys_port_cnt = 2;
    attributes.max_qp_wr = 1000;
    attributes.max_sge = 4;
    attributes.max_cqe = 5000;
    port.state = IBV_PORT_ACTIVE;
    port.active_mtu = IBV_MTU_2048;
    port.lid = 7;
    port.gid_tbl_len = 4;
    port.link_layer = IBV_LINK_LAYER_INFINIBAND;
    qp.qp_num = 42;
    ON_CALL(*this, device_names()).WillByDefault(Return(std::vector<std::string>{"mock0"}));
    ON_CALL(*this, open(_)).WillByDefault(Return(&context));
    ON_CALL(*this, query_device(_, _)).WillByDefault([this](ibv_context*, ibv_device_attr* out) {
      *out = attributes;
      return 0;
    });
    ON_CALL(*this, query_port(_, _, _)).WillByDefault([this](ibv_context*, std::uint8_t, ibv_port_attr* out) {
      *out = port;
      return 0;
    });
    ON_CALL(*this, alloc_pd(_)).WillByDefault(Return(&pd));
    ON_CALL(*this, reg_mr(_, _, _, _)).WillByDefault(Return(&mr));
    ON_CALL(*this, create_comp_channel(_)).WillByDefault(Return(&channel));
    ON_CALL(*this, create_cq(_, _, _, 0)).WillByDefault(Return(&cq));
    ON_CALL(*this, create_qp(_, _)).WillByDefault(Return(&qp));
    ON_CALL(*this, create_ah(_, _)).WillByDefault(Return(&ah));
  }

  ibv_device device{};
  ibv_context context{};
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  ibv_pd pd{};
  ibv_mr mr{};
  ibv_comp_channel channel{};
  ibv_cq cq{};
  ibv_srq srq{};
  ibv_qp qp{};
  ibv_qp_ex qp_ex{};
  ibv_ah ah{};
};

}  // namespace verbscope
