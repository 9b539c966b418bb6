// perftest as a benchmark of sweeps: its own programs on a simulated cluster; between two processes, where there is no
// device, a program that stands for them.
#include <cstdlib>

#include "harness/point/point_runner.hpp"
#include "tests/harness/program.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kPerftest = VERBSCOPE_BINARY_DIR "/bin/perftest";

std::vector<Record> records_of_sweep(const std::string& rest, const std::string& end) {
  TempFolder folder;
  write_text(folder.file("sweep.json"), R"({"schema": "verbscope.sweep/1", )" + rest + "}");
  const std::string results = folder.file("results.jsonl");
  const Ran ran = run({"run", folder.file("sweep.json"), "--hosts", "sim:cib", "--out", results});
  EXPECT_EQ(ran.end, end) << ran.out << ran.err;
  return read_results(results).records;
}

// Both have one QP of one port, and lists of one WRITE.
TEST(Perftest, HasTheRatesOfWriteRateOnASimulatedCluster) {
  if (!simulates_perftest()) GTEST_SKIP() << "perftest cannot be simulated here";
  const std::string sizes = R"(, "vary": {"size": [64, 4096]})";
  const std::vector<Record> theirs = records_of_sweep(
      R"("benchmark": "perftest", "fixed": {"tool": "ib_write_bw", "iters": 5000, "noPeak": true})" + sizes,
      "exit status 0");
  const std::vector<Record> ours =
      records_of_sweep(R"("benchmark": "write_rate", "fixed": {"ib_port": "1"})" + sizes, "exit status 0");
  ASSERT_EQ(theirs.size(), 2u);
  ASSERT_EQ(ours.size(), 2u);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(theirs[i].benchmark, "perftest");
    EXPECT_EQ(theirs[i].config.at("size"), ours[i].config.at("size"));
    const double expected = ours[i].result.at("rate_mops");
    EXPECT_NEAR(theirs[i].result.at("rate_mops").get<double>(), expected, 0.05 * expected) << ours[i].config.at("size");
    EXPECT_EQ(theirs[i].environment.at("cluster_profile"), ours[i].environment.at("cluster_profile"));
    ASSERT_EQ(theirs[i].counters.size(), 2u) << "of the server and of the client";
    const CounterReport& posting = theirs[i].counters.front();
    // A WRITE without a list is one WQE by BlueFlame.
    EXPECT_GE(static_cast<double>(posting.events.mmio_wc_lines),
              operations_in_window(theirs[i].result, posting) * 0.99);
  }
}

TEST(Perftest, MeasuresLatenciesAndIsTheSameEachTime) {
  if (!simulates_perftest()) GTEST_SKIP() << "perftest cannot be simulated here";
  const std::string sweep =
      R"("benchmark": "perftest", "fixed": {"tool": "ib_read_lat", "size": 8, "iters": 200}, "seed": 3)";
  const std::vector<Record> first = records_of_sweep(sweep, "exit status 0");
  const std::vector<Record> second = records_of_sweep(sweep, "exit status 0");
  EXPECT_EQ(first.at(0).result.at("trip"), "full");
  EXPECT_GT(first.at(0).result.at("lat_p50_ns").get<double>(), 1000);
  EXPECT_EQ(first.at(0).result, second.at(0).result);
}

TEST(Perftest, ItsRefusalIsTheReasonOfTheFailedRecord) {
  if (!simulates_perftest()) GTEST_SKIP() << "perftest cannot be simulated here";
  const std::vector<Record> records =
      records_of_sweep(R"("benchmark": "perftest", "fixed": {"tool": "ib_write_lat", "qp": 4})", "exit status 1");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].status, RecordStatus::failed);
  EXPECT_THAT(records[0].reason, AllOf(HasSubstr("ib_write_lat: exit status 1"), HasSubstr("Multiple QPs")));
}

TEST(Perftest, NamesThePackageOfAMissingProgram) {
  const Ran ran = run({"PATH=/nowhere", kPerftest, "--fabric", "sim:cib"}, "/usr/bin/env");
  EXPECT_EQ(ran.end, "exit status 1");
  EXPECT_THAT(ran.err, AllOf(HasSubstr("ib_write_bw is not installed"), HasSubstr("package perftest")));
}

// Stands for ib_write_bw where there is no device: a server and a client that meet over TCP. The client prints a table.
// `client` and `server` are run in Python before.
class FakeTool {
 public:
  explicit FakeTool(const std::string& server = "", const std::string& client = "") {
    write_text(folder_.file("ib_write_bw"), R"(#!/usr/bin/python3
import socket, sys, time
words = sys.argv[sys.argv.index("-p") + 1:]
if len(words) == 1:
    )" + (server.empty() ? "pass" : server) + R"(
    socket.create_server(("127.0.0.1", int(words[0]))).accept()[0].recv(1)
else:
    )" + (client.empty() ? "pass" : client) + R"(
    socket.create_connection((words[1], int(words[0]))).sendall(b"x")
    print("RDMA_Write BW Test\n #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]")
    print(" 64 1000 0.00 122.07 2.000000")
)");
    std::filesystem::permissions(folder_.file("ib_write_bw"), std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.path() + ":" + before_).c_str(), 1);
  }
  FakeTool(const FakeTool&) = delete;
  FakeTool& operator=(const FakeTool&) = delete;
  ~FakeTool() { setenv("PATH", before_.c_str(), 1); }

 private:
  TempFolder folder_;
  std::string before_ = std::getenv("PATH");
};

// A point between two processes of this machine.
Record run_between_processes(Json params) {
  params["tool"] = "ib_write_bw";
  Point point;
  point.benchmark = "perftest";
  point.params = std::move(params);
  const RunTarget target{.fabric = "verbs",
                         .roles = assign_roles(parse_hosts("localhost role=server address=127.0.0.1\n"
                                                           "127.0.0.1\n",
                                                           "hosts"),
                                               "hosts")};
  return PointRunner(kPerftest, describe_benchmark(kPerftest), target, {.timeout = std::chrono::seconds(60)}, nullptr)
      .run(point)
      .value();
}

TEST(Perftest, PassesTheClientsFiguresToTheServer) {
  const FakeTool tool;
  const Record record = run_between_processes(Json::object());
  ASSERT_EQ(record.status, RecordStatus::ok) << record.reason;
  EXPECT_EQ(record.result.at("rate_mops"), 2.0);
  EXPECT_EQ(record.config.at("size"), 64);
  EXPECT_EQ(record.environment.at("fabric"), "verbs");
  EXPECT_EQ(record.result.at("clients").at(0).at("result").at("rate_mops"), 2.0);
}

TEST(Perftest, AFailureOfEitherSideIsTheReason) {
  {
    const FakeTool tool("", "sys.exit(' Failed to modify QP 7 to RTS')");
    const Record record = run_between_processes(Json::object());
    EXPECT_EQ(record.status, RecordStatus::failed);
    EXPECT_THAT(record.reason, HasSubstr("ib_write_bw: exit status 1: Failed to modify QP 7 to RTS"));
  }
  const FakeTool tool("sys.exit(' Unable to find the device')");
  EXPECT_THAT(run_between_processes(Json::object()).reason,
              HasSubstr("ib_write_bw: exit status 1: Unable to find the device"));
}

TEST(Perftest, EachWaitHasATimeOut) {
  {
    const FakeTool tool("time.sleep(100)");
    EXPECT_THAT(run_between_processes({{"timeout", "300ms"}}).reason,
                AllOf(HasSubstr("ib_write_bw: not listening on port"), HasSubstr("after 0.3 s")));
  }
  const FakeTool tool("", "time.sleep(100)");
  EXPECT_THAT(run_between_processes({{"time_limit", "500ms"}}).reason, HasSubstr("not finished after 0.5 s"));
}

}  // namespace
}  // namespace verbscope
