// Exports in perftest's format: its test names, one document per size.
#include <gmock/gmock.h>

#include <algorithm>

#include "analysis/perftest.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

std::string perftest_json(const Record& record) {
  return perftest_lines({&record}, PerftestForm::json);
}

TEST(PerftestView, EachSizeHasItsFigures) {
  Record record = latency_of("write");
  record.result["ops"] = 30;
  record.result["latency"] = Json{{{"size", 2}, {"lat_samples", 20}, {"lat_min_ns", 1200}, {"lat_mean_ns", 1285}},
                                  {{"size", 64}, {"lat_samples", 10}, {"lat_min_ns", 1250}, {"lat_mean_ns", 1300}}};
  const std::string text = perftest_json(record);
  const std::size_t second = text.find("\n}\n") + 3;
  EXPECT_THAT(text.substr(0, second), AllOf(HasSubstr("\"MsgSize\": 2,\n\"n_iterations\": 20,\n\"t_min\": 1.20,\n")));
  EXPECT_THAT(text.substr(second), AllOf(HasSubstr("\"MsgSize\": 64,\n\"n_iterations\": 10,\n\"t_min\": 1.25,\n"),
                                         HasSubstr("\"t_avg\": 1.30,\n")));
}

// The names are those printed by ib_send_bw, ib_write_lat, ib_atomic_lat and the others.
TEST(PerftestView, TitlesArePerftestTestNames) {
  EXPECT_EQ(perftest_title(run_of("send_rate", {})), "Send BW Test");
  EXPECT_EQ(perftest_title(run_of("recv_rate", {})), "Send BW Test");
  EXPECT_EQ(perftest_title(run_of("write_rate", {{"bidirectional", true}, {"post_list", 16}})),
            "RDMA_Write Bidirectional Post List BW Test");
  EXPECT_EQ(perftest_title(run_of("wqe_cache", {{"verb", "read"}})), "RDMA_Read BW Test");
  EXPECT_EQ(perftest_title(run_of("qp_scaling", {{"verb", "write"}})), "RDMA_Write BW Test");
  EXPECT_EQ(perftest_title(run_of("atomic_rate", {{"verb", "fetch_add"}})), "Atomic FETCH_AND_ADD BW Test");
  EXPECT_EQ(perftest_title(latency_of("write_inline")), "RDMA_Write Latency Test");
  EXPECT_EQ(perftest_title(latency_of("send")), "Send Latency Test");
  EXPECT_EQ(perftest_title(latency_of("compare_swap")), "Atomic CMP_AND_SWAP Latency Test");
}

TEST(PerftestView, TitlesParseBack) {
  for (const char* title : {"Send BW Test", "RDMA_Write Bidirectional Post List BW Test", "RDMA_Read Latency Test",
                            "Atomic FETCH_AND_ADD BW Test", "Atomic CMP_AND_SWAP Latency Test"}) {
    std::string json = title;
    std::ranges::replace(json, ' ', '_');
    for (const std::string& form : {std::string(title), json}) {
      const auto test = perftest_test(form);
      ASSERT_TRUE(test) << form;
      EXPECT_EQ(test->latency, form.find("Latency") != form.npos);
      EXPECT_EQ(test->bidirectional, form.find("Bidirectional") != form.npos);
      EXPECT_EQ(test->verb == "fetch_add", form.find("FETCH") != form.npos);
    }
  }
  for (const char* other : {"", "Test", "Raw Ethernet BW Test", "Sending BW Test", "Send BW Tests"})
    EXPECT_FALSE(perftest_test(other));
}

// 2 threads of 4 QPs; 10 million messages of 1000 bytes a second are 80 Gb/s, and 9536.74 times 2^20 bytes.
TEST(PerftestView, CountsQpsOfAllThreadsAndKeepsTheUnit) {
  Record record = run_of("write_rate", {{"size", 1000}, {"qp", 4}, {"threads", 2}, {"report_gbits", false}});
  record.result["rate_mops"] = 10.0;
  EXPECT_THAT(perftest_json(record),
              AllOf(HasSubstr("\"Number_of_qps\": 8,\n"), HasSubstr("\"BW_average\": 9536.74,\n")));
  record.config["report_gbits"] = true;
  EXPECT_THAT(perftest_json(record), HasSubstr("\"BW_average\": 80.00,\n"));
  EXPECT_THAT(perftest_lines({&record}, PerftestForm::table),
              AllOf(HasSubstr("BW average[Gb/sec]"), HasSubstr("80.00 ")));
}

TEST(PerftestView, UnsupportedRecordsAreSkippedWithAWarningOrRejected) {
  const Record echo = latency_of("echo"), store = run_of("kv_atomic", {}), send = run_of("send_rate", {});
  testing::internal::CaptureStderr();
  EXPECT_EQ(perftest_lines({&echo, &send, &store}, PerftestForm::json), perftest_json(send));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "verbscope: warning: perftest has no test like kv_atomic, verb_latency --verb echo: skipped\n");
  EXPECT_THROW(perftest_json(store), Error);
}

}  // namespace
}  // namespace verbscope
