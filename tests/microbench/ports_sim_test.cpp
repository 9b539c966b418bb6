// A benchmark on one port of a simulated adapter that has two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::refusal_of;
using test::run_program;
using testing::HasSubstr;

class OnOnePort : public testing::TestWithParam<const char*> {};

TEST_P(OnOnePort, DeviceAndPortSelectTheSame) {
  const std::string run = GetParam() + std::string(" --fabric sim:cib -D 50us --warmup 50us ");
  const Json by_device = record_of(run + "--ib_dev sim0:2");
  const Json by_port = record_of(run + "--ib_port 2");
  EXPECT_EQ(by_device.at("config").at("ports"), 1);
  EXPECT_EQ(by_device.at("result"), by_port.at("result"));
  EXPECT_EQ(by_device.at("counters"), by_port.at("counters"));
}

// With two QPs a second port would be in use.
INSTANTIATE_TEST_SUITE_P(, OnOnePort,
                         testing::Values("all_to_all --machines 2 --threads 2", "atomic_rate -q 2", "echo_rate -q 2",
                                         "incast_rate --flows 2", "kv_atomic -q 2", "kv_rate -q 2", "ordered_kv",
                                         "qp_scaling --connections 2", "read_chain -q 2", "read_rate -q 2",
                                         "recv_rate -q 2", "rpc_incast", "rpc_large", "rpc_rate --threads 2",
                                         "send_rate -q 2", "sequencer -q 2", "verb_latency", "wqe_cache --threads 2",
                                         "write_rate -q 2", "write_visibility"));

TEST(Ports, RefuseWhatTheDeviceHasNot) {
  const std::string run = "write_rate --fabric sim:cib ";
  EXPECT_THAT(run_program(run + "--ib_dev sim0:3").err, HasSubstr("sim0 has no port 3: it has ports 1-2"));
  EXPECT_THAT(run_program(run + "--ib_dev sim1:1").err, HasSubstr("no RDMA device \"sim1\": found sim0"));
  EXPECT_THAT(refusal_of(run + "--ib_dev sim0:x"),
              HasSubstr("--ib_dev: port: expected a number from 1 to 255, got \"x\""));
  EXPECT_THAT(refusal_of(run + "--ib_dev sim0:1 --ib_port 2"),
              HasSubstr("--ib_port 2: --ib_dev sim0:1 selects another port"));
}

}  // namespace
}  // namespace verbscope
