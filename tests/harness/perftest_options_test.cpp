// The benchmark `perftest`: the command lines that its options give, and what it reads in perftest's output.
#include "harness/perftest/options.hpp"
#include "harness/perftest/output.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(PerftestOptions, LeaveDefaultsToPerftest) {
  EXPECT_THAT(perftest_command({}), ElementsAre("ib_write_bw", "-F"));
}

TEST(PerftestOptions, BecomeFlagsOfPerftest) {
  const PerftestOptions options{.tool = "ib_send_bw",
                                .connection = "UD",
                                .size = 64,
                                .post_list = 16,
                                .inline_size = 0,
                                .cq_mod = 32,
                                .qp = 4,
                                .tx_depth = 256,
                                .rx_depth = 1024,
                                .outstanding = 8,
                                .mtu = 2048,
                                .events = true,
                                .bidirectional = true,
                                .no_peak = true,
                                .iters = 1000,
                                .ib_dev = "mlx5_0",
                                .gid_index = 3};
  EXPECT_THAT(
      perftest_command(options),
      ElementsAre("ib_send_bw", "-F", "-c", "UD", "-s", "64", "-l", "16", "-I", "0", "-Q", "32", "-q", "4", "-t", "256",
                  "-r", "1024", "-o", "8", "-m", "2048", "-n", "1000", "-e", "-b", "-N", "-x", "3", "-d", "mlx5_0"));
}

TEST(PerftestOptions, NameThePortBehindTheDevice) {
  EXPECT_THAT(perftest_command({.ib_dev = "mlx5_0:2"}), ElementsAre("ib_write_bw", "-F", "-d", "mlx5_0", "-i", "2"));
}

TEST(PerftestOptions, ChooseTheAtomicAndWholeSeconds) {
  EXPECT_THAT(
      perftest_command({.tool = "ib_atomic_lat", .atomic_type = "CMP_AND_SWAP", .duration = std::chrono::seconds(3)}),
      ElementsAre("ib_atomic_lat", "-F", "-A", "CMP_AND_SWAP", "-D", "3"));
}

TEST(PerftestOptions, AreRefusedIfNoRunHasThem) {
  const auto refusal = [](const PerftestOptions& options) {
    return error_of([&] { check_perftest_options(options); });
  };
  EXPECT_THAT(refusal({.fabric = "null"}), HasSubstr("--fabric null: expected verbs or sim:NAME"));
  EXPECT_THAT(refusal({.fabric = "sim:cib", .host = "a"}), HasSubstr("host argument (a)"));
  EXPECT_THAT(refusal({.fabric = "sim:cib", .listen = "a"}), HasSubstr("--listen a"));
  EXPECT_THAT(refusal({.listen = "a", .host = "b"}), HasSubstr("--listen a"));
  EXPECT_THAT(refusal({.clients = 2}), HasSubstr("--clients 2: expected 1"));
  EXPECT_THAT(refusal({.duration = std::chrono::seconds(1), .iters = 5}), HasSubstr("--iters and --duration"));
  EXPECT_THAT(refusal({.duration = std::chrono::milliseconds(1500)}), HasSubstr("--duration 1.5: expected whole"));
  EXPECT_THAT(refusal({.cores = "x"}), HasSubstr("--cores"));
}

constexpr const char* kTable =
    "                    RDMA_Write BW Test\n"
    " Number of qps   : 1\t\tTransport type : IB\n"
    " CQ Moderation   : 100\n"
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    " 64         5000             0.00               345.15 \t\t   5.654937\n";

TEST(PerftestOutput, GivesTheFiguresOfTheFirstTable) {
  Outcome outcome;
  add_figures("ib_write_bw", {{"* Waiting for client to connect... *\n", ""}, {kTable, ""}}, outcome);
  EXPECT_EQ(outcome.result.at("rate_mops"), 5.654937);
  EXPECT_EQ(outcome.result.at("ops"), 5000);
  EXPECT_EQ(outcome.config.at("size"), 64);
  EXPECT_EQ(outcome.config.at("cq_mod"), 100);
  EXPECT_THAT(error_of([&] {
                add_figures("ib_write_bw",
                            {{"", ""}, {"RDMA_Write BW Test\n", "Correlation coefficient r^2: 0.5 < 0.9\n"}}, outcome);
              }),
              AllOf(HasSubstr("ib_write_bw has printed no row"), HasSubstr("r^2: 0.5 < 0.9")));
}

TEST(PerftestOutput, NamesTheReasonOfAFailure) {
  const std::string end = "ib_write_bw: exit status 1";
  EXPECT_EQ(failure_text(end, {" Gid index should be between 0 and 64", " Parser function exited with Error"}),
            end + ": Gid index should be between 0 and 64");
  EXPECT_EQ(failure_text(end, {"Couldn't listen to port 18515", "---------", " Mtu             : 4096[B]"}),
            end + ": Couldn't listen to port 18515")
      << "standard output may follow standard error";
  EXPECT_EQ(failure_text(end, {" Couldn't get context for the device"}),
            end + ":  Couldn't get context for the device");
  EXPECT_EQ(failure_text(end, {}), end);
}

}  // namespace
}  // namespace verbscope
