// Records in the shape of perftest: its names for its tests, a document a size.
#include "analysis/views.hpp"

#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

Record run_of(const std::string& benchmark, const Json& config) {
  Record record = fake_record("sim:cib");
  record.benchmark = benchmark;
  record.config = config;
  return record;
}

Record latency_of(const std::string& verb) {
  Record record = run_of("verb_latency", {{"verb", verb}, {"size", 64}});
  record.result["latency"] = Json{{{"size", 64}, {"lat_samples", 10}, {"lat_mean_ns", 1300}}};
  return record;
}

std::string test_of(const Record& record) {
  return perftest_views(record).at(0).at("test_info").at("test");
}

TEST(PerftestView, EachSizeHasItsOwnFigures) {
  Record record = latency_of("write");
  record.result["ops"] = 30;
  record.result["latency"] = Json{{{"size", 2}, {"lat_samples", 20}, {"lat_min_ns", 1200}, {"lat_mean_ns", 1285}},
                                  {{"size", 64}, {"lat_samples", 10}, {"lat_min_ns", 1250}, {"lat_mean_ns", 1300}}};
  const auto views = perftest_views(record);
  ASSERT_EQ(views.size(), 2u);
  const Json& small = views[0].at("results");
  EXPECT_EQ(small.at("MsgSize"), 2);
  EXPECT_EQ(small.at("n_iterations"), 20);
  EXPECT_EQ(small.at("t_min"), 1.2);
  const Json& large = views[1].at("results");
  EXPECT_EQ(large.at("MsgSize"), 64);
  EXPECT_EQ(large.at("n_iterations"), 10);
  EXPECT_EQ(large.at("t_avg"), 1.3);
}

// The names are those by which ib_send_bw, ib_write_lat, ib_atomic_lat and the others call themselves.
TEST(PerftestView, TestsHavePerftestsNames) {
  EXPECT_EQ(test_of(run_of("send_rate", {})), "Send BW Test");
  EXPECT_EQ(test_of(run_of("recv_rate", {})), "Send BW Test");
  EXPECT_EQ(test_of(run_of("wqe_cache", {{"verb", "read"}})), "RDMA_Read BW Test");
  EXPECT_EQ(test_of(run_of("qp_scaling", {{"verb", "write"}})), "RDMA_Write BW Test");
  EXPECT_EQ(test_of(run_of("atomic_rate", {{"verb", "fetch_add"}})), "Atomic FETCH_AND_ADD BW Test");
  EXPECT_EQ(test_of(latency_of("write_inline")), "RDMA_Write Latency Test");
  EXPECT_EQ(test_of(latency_of("send")), "Send Latency Test");
  EXPECT_EQ(test_of(latency_of("compare_swap")), "Atomic CMP_AND_SWAP Latency Test");
}

TEST(PerftestView, WhatPerftestHasNoTestOfIsLeftOutAloudOrRefused) {
  const Record echo = latency_of("echo"), store = run_of("kv_atomic", {}), send = run_of("send_rate", {});
  testing::internal::CaptureStderr();
  EXPECT_EQ(perftest_lines({&echo, &send, &store}), perftest_lines({&send}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "verbscope: warning: perftest has no test like kv_atomic, verb_latency --verb echo: left out\n");
  EXPECT_THROW(perftest_lines({&store}), Error);
}

}  // namespace
}  // namespace verbscope
