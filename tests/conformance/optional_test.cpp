// Calls that few devices have: on others each fails with the errno that its manual page names.
// ibv_query_qp_data_in_order(3), ibv_advise_mr(3), ibv_reg_dmabuf_mr(3), ibv_create_flow(3), ibv_create_counters(3),
// ibv_create_flow_action(3), ibv_create_wq(3), ibv_create_rwq_ind_table(3), ibv_alloc_dm(3), ibv_modify_cq(3),
// ibv_modify_qp_rate_limit(3), ibv_alloc_null_mr(3), ibv_create_srq_ex(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Optional : public Rig {};

// A call that returns an object, or EOPNOTSUPP where the device has none such.
template <class T, class Destroy>
void expect_unsupported(T* made, Destroy destroy) {
  const int error = errno;
  if (made != nullptr) {
    EXPECT_EQ(destroy(made), 0);
    GTEST_SKIP() << "this device has it";
  }
  EXPECT_EQ(error, EOPNOTSUPP);
}

// A call that returns an errno.
void expect_unsupported(int error) {
  if (error == 0) GTEST_SKIP() << "this device has it";
  EXPECT_EQ(error, EOPNOTSUPP);
}

class DataInOrder : public EachTransport {
 protected:
  int in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags = 0) {
    return b.verbs().query_qp_data_in_order(qp, opcode, flags);
  }
};
VERBSCOPE_EACH_TRANSPORT(DataInOrder);

TEST_P(DataInOrder, IsYesOrNo) {
  ibv_qp* qp = b.make_qp(type());
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    EXPECT_THAT(in_order(qp, opcode), testing::AnyOf(0, 1)) << opcode;
  }
}

// "Extra field for future input."
TEST_P(DataInOrder, IsNotPromisedWithUnknownFlags) {
  EXPECT_EQ(in_order(b.make_qp(type()), IBV_WR_SEND, 0x80), 0);
}

// A reader may poll for the last byte instead of the completion.
TEST_F(Optional, LastBytesOfWritesComeLastIfTheQpSaysSo) {
  const Pair pair = connect(IBV_QPT_RC);
  VERBSCOPE_NEEDS(b.verbs().query_qp_data_in_order(pair.b, IBV_WR_RDMA_WRITE, 0) == 1, "data in order");
  const std::uint32_t length = 20 * mtu_of(a) + 9;
  fabric().watch(b.memory(), length);
  for (unsigned seed = 1; seed < 4; ++seed) {
    std::memset(b.memory(), 0, length);
    fill(a.memory(), length, seed);
    send(pair.a, write_to(a.sge(0, length), b, 0));
    await_until([&] { return b.memory()[length - 1] != 0; }, "the last byte of a WRITE");
    EXPECT_TRUE(has_pattern(b.memory(), length, seed));
    await_success(a.send_cq(), "the WRITE");
  }
}

TEST_F(Optional, AdviceIsForOnDemandPagingOnly) {
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(b.context(), nullptr, &attr), 0);
  if ((attr.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0) GTEST_SKIP() << "this device pages on demand";
  ibv_sge range = b.sge(0, 4096);
  for (const ibv_advise_mr_advice advice :
       {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT}) {
    EXPECT_EQ(ibv_advise_mr(b.pd(), advice, IBV_ADVISE_MR_FLAG_FLUSH, &range, 1), EOPNOTSUPP) << advice;
  }
}

TEST_F(Optional, MemoryOfOtherDevicesNeedsAFile) {
  errno = 0;
  EXPECT_EQ(b.verbs().reg_dmabuf_mr(b.pd(), 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_THAT(errno, testing::AnyOf(EOPNOTSUPP, EBADF));
}

TEST_F(Optional, RelaxedRegionsServeRequests) {
  ibv_mr* mr = b.make_mr(0, 65536, kAllAccess | IBV_ACCESS_RELAXED_ORDERING);
  const Pair pair = connect(IBV_QPT_RC);
  fill(a.memory(), 5000, 1);
  send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {a.sge(0, 5000)}, .remote = b.address(), .rkey = mr->rkey});
  await_success(a.send_cq(), "a WRITE to a relaxed region");
  marker(pair);  // the completion of a later SEND is behind the data
  EXPECT_TRUE(has_pattern(b.memory(), 5000, 1));
}

TEST_F(Optional, FlowSteering) {
  ibv_flow_attr attr{};
  attr.type = IBV_FLOW_ATTR_NORMAL;
  attr.size = sizeof attr;
  attr.port = b.device().port();
  errno = 0;
  expect_unsupported(ibv_create_flow(b.make_qp(IBV_QPT_UD), &attr), ibv_destroy_flow);
}

TEST_F(Optional, FlowActions) {
  ibv_flow_action_esp_attr attr{};
  errno = 0;
  expect_unsupported(ibv_create_flow_action_esp(b.context(), &attr), ibv_destroy_flow_action);
}

TEST_F(Optional, Counters) {
  ibv_counters_init_attr attr{};
  errno = 0;
  expect_unsupported(ibv_create_counters(b.context(), &attr), ibv_destroy_counters);
}

TEST_F(Optional, WorkQueues) {
  ibv_wq_init_attr attr{};
  attr.wq_type = IBV_WQT_RQ;
  attr.max_wr = 4;
  attr.max_sge = 1;
  attr.pd = b.pd();
  attr.cq = b.recv_cq();
  errno = 0;
  expect_unsupported(ibv_create_wq(b.context(), &attr), ibv_destroy_wq);
}

TEST_F(Optional, IndirectionTables) {
  ibv_rwq_ind_table_init_attr attr{};
  errno = 0;
  EXPECT_EQ(ibv_create_rwq_ind_table(b.context(), &attr), nullptr) << "a table without work queues";
  EXPECT_THAT(errno, testing::AnyOf(EOPNOTSUPP, EINVAL));
}

TEST_F(Optional, MemoryOfTheDevice) {
  ibv_alloc_dm_attr attr{};
  attr.length = 64;
  errno = 0;
  expect_unsupported(ibv_alloc_dm(b.context(), &attr), ibv_free_dm);
}

TEST_F(Optional, NullRegions) {
  errno = 0;
  expect_unsupported(ibv_alloc_null_mr(b.pd()), [this](ibv_mr* mr) { return b.verbs().dereg_mr(mr); });
}

TEST_F(Optional, ModerationOfCqs) {
  ibv_modify_cq_attr attr{};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  expect_unsupported(ibv_modify_cq(b.recv_cq(), &attr));
}

TEST_F(Optional, RateLimits) {
  const Pair pair = connect(IBV_QPT_RC);
  ibv_qp_rate_limit_attr attr{};
  attr.rate_limit = 1000;
  expect_unsupported(ibv_modify_qp_rate_limit(pair.a, &attr));
}

TEST_F(Optional, TagMatching) {
  ibv_srq_init_attr_ex attr{};
  attr.attr.max_wr = 4;
  attr.attr.max_sge = 1;
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  attr.srq_type = IBV_SRQT_TM;
  attr.pd = b.pd();
  attr.cq = b.recv_cq();
  attr.tm_cap = {.max_num_tags = 4, .max_ops = 4};
  errno = 0;
  expect_unsupported(ibv_create_srq_ex(b.context(), &attr),
                     [this](ibv_srq* srq) { return b.verbs().destroy_srq(srq); });
}

}  // namespace
}  // namespace verbscope::conformance
