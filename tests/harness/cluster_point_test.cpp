// A point whose roles run on other hosts: deployed there, watched, and combined into one record.
#include "harness/point/point_runner.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "tests/harness/loop_launcher.hpp"

namespace verbscope {
namespace {

using std::chrono::milliseconds;

// Two hosts with the fake benchmark and the real holder on them. $role is "server" or "client" in the bodies.
class ClusterPoint {
 public:
  ClusterPoint(const std::string& server, const std::string& client)
      : fake_(
            "role=client; case \"$all\" in *--port=0*) role=server;; esac; echo $$ > $dir/$role.pid\n"
            "if [ $role = server ]; then echo 'listening on port 4242'; " +
                server + "\nelse " + client + "\nfi",
            "verbs"),
        launcher_("echo 'motd'; export HOME=" + shell_quote({home_.file("")})) {
    std::filesystem::copy_file(kHolder, fake_.file("verbscope"));
    target_.fabric = "verbs";
    target_.roles = assign_roles(parse_hosts("n1 role=server address=10.0.0.1\nn2 role=client cores=0\n", "h"), "h");
    target_.launcher = &launcher_;
    target_.deployment = &deployment_;
    const auto programs = hash_programs(fake_.folder(), {"send_rate", "verbscope"}, nullptr);
    for (const Host& host : target_.roles->all()) deployment_.deploy(launcher_, host, programs, nullptr);
  }

  Record run() {
    Point point;
    point.benchmark = "send_rate";
    point.params = Json{{"size", 64}};
    const RoleLimits limits{.timeout = milliseconds(60'000), .silence = milliseconds(5'000)};
    return PointRunner(fake_.binary(), describe_benchmark(fake_.binary()), target_, limits, nullptr).run(point).value();
  }
  int pid(const std::string& role) const { return std::stoi(read_text(fake_.file(role + ".pid"))); }
  LoopLauncher& launcher() { return launcher_; }

 private:
  TempFolder home_;
  FakeBenchmark fake_;
  LoopLauncher launcher_;
  Deployment deployment_;
  RunTarget target_;
};

TEST(ClusterPoint, CombinesTheRecordsOfBothRoles) {
  ClusterPoint point(kGood, kGood);
  const Record record = point.run();
  EXPECT_EQ(record.status, RecordStatus::ok) << record.reason;
  EXPECT_EQ(record.result.at("clients").at(0).at("host"), "n2");
  EXPECT_EQ(record.result.at("clients").at(0).at("result").at("rate_mops"), 10.0);
  EXPECT_EQ(record.environment.at("clients").size(), 1u);
}

TEST(ClusterPoint, AFailedProcessEndsTheOther) {
  ClusterPoint point("exec sleep 1000", "echo 'no route' >&2; exit 4");
  const Record record = point.run();
  EXPECT_EQ(record.reason, "client 0 on n2: exit status 4: no route");
  EXPECT_THAT(record.result.at("command").at(0).get<std::string>(), testing::EndsWith("/send_rate"));
  EXPECT_EQ(record.result.at("end"), "exit status 4");
  EXPECT_TRUE(is_gone_soon(point.pid("server")));
}

TEST(ClusterPoint, DoesNotCountTimeWithoutReadingAsSilence) {
  ClusterPoint point("while ! [ -e $dir/client.pid ]; do sleep 0.05; done; " + std::string(kGood), kGood);
  point.launcher().slow_host = "n2";
  point.launcher().delay = milliseconds(6'000);
  EXPECT_EQ(point.run().reason, "");
}

TEST(ClusterPoint, GivesUpASilentHostAndReportsTheTime) {
  ClusterPoint point("exec sleep 1000", "kill -STOP $PPID; exec sleep 1000");  // its parent is the holder
  EXPECT_EQ(point.run().reason, "client 0 on n2: the host does not respond: no message for 5 s");
  EXPECT_EQ(point.launcher().lost_hosts, std::vector<std::string>{"n2"});
  EXPECT_TRUE(is_gone_soon(point.pid("server")));
  EXPECT_TRUE(is_gone_soon(point.pid("client")));
}

}  // namespace
}  // namespace verbscope
