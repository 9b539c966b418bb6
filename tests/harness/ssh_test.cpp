// Commands over ssh with an unreachable host, and with an interrupt before the first point.
#include "harness/point/run_sweep.hpp"
#include "harness/process/child.hpp"
#include "tests/harness/fake_ssh.hpp"
#include "tests/harness/loop_launcher.hpp"

namespace verbscope {
namespace {

// The server and the client of a point, on n1 and n2. Size 2 fails until $dir/repaired exists.
constexpr const char* kServerAndClient =
    "case \"$all\" in *--size=2*) [ -e \"$dir/repaired\" ] || { echo broken >&2; exit 1; };; esac\n"
    "case \"$all\" in *--port=0*) echo 'listening on port 4242';; esac\n"
    "cat \"$record\" > \"$out\"";

class SshTest : public testing::Test {
 protected:
  SshTest() {
    std::filesystem::copy_file(kHolder, fake_.file("verbscope"));
    write_text(fake_.file("hosts"), "n1 management=n1 role=server address=127.0.0.1\nn2 management=n2 role=client\n");
    write_text(fake_.file("sweep.json"),
               R"({"schema": "verbscope.sweep/1", "benchmark": "send_rate", "vary": {"size": [1, 2]}})");
    std::filesystem::create_directory(fake_.file("tmp"));
  }

  // Runs the sweep in this process. Keeps the results file of earlier runs.
  int run_sweep_again() {
    RunOptions options;
    options.sweep = fake_.file("sweep.json");
    options.hosts = fake_.file("hosts");
    options.out = fake_.file("results.jsonl");
    options.resume = true;
    std::FILE* out = std::fopen("/dev/null", "w");
    struct Closer {
      std::FILE* file;
      ~Closer() { std::fclose(file); }
    } closer{out};
    return run_sweep(options, fake_.folder(), out);
  }

  // Runs the program to its end and returns its exit status and last output.
  std::string run_program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), fake_.file("verbscope"));
    arguments.insert(arguments.end(), {"--hosts", fake_.file("hosts")});
    Child child(arguments, {}, {"TMPDIR=" + fake_.file("tmp")});
    const auto ended = [&child] { return !child.running(); };
    EXPECT_EQ(wait_children({&child}, std::chrono::steady_clock::now() + std::chrono::seconds(60), nullptr, ended),
              WaitEnd::satisfied);
    return child.end_text() + ": " + (child.tail().empty() ? "" : child.tail().back());
  }

  // The files below the host's home, once there are none, or after 10 s: a host needs time to notice the end.
  std::vector<std::string> files_left(const std::string& host) {
    std::vector<std::string> files;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    do {
      files.clear();
      for (const auto& entry : std::filesystem::recursive_directory_iterator(ssh_.home(host))) {
        if (!entry.is_directory()) files.push_back(entry.path());
      }
      usleep(1000);
    } while (!files.empty() && std::chrono::steady_clock::now() < deadline);
    return files;
  }

  FakeSsh ssh_;
  FakeBenchmark fake_{kServerAndClient, "verbs"};
};

TEST_F(SshTest, NamesAnUnreachableHostAndKeepsTheRecords) {
  EXPECT_EQ(run_sweep_again(), 1);
  const std::string before = read_text(fake_.file("results.jsonl"));
  ssh_.set_down("n2");
  EXPECT_EQ(error_of([&] { run_sweep_again(); }),
            "host n2: query: ssh: cannot connect: ssh: connect to host n2: No route to host");
  EXPECT_EQ(read_text(fake_.file("results.jsonl")), before);
  ssh_.set_up("n2");
  write_text(fake_.file("repaired"), "");
  EXPECT_EQ(run_sweep_again(), 0);
  const auto records = read_results(fake_.file("results.jsonl")).records;
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].status, RecordStatus::ok) << records[0].reason;
  EXPECT_EQ(records[1].reason, "server on n1: exit status 1: broken");
  EXPECT_EQ(records[2].status, RecordStatus::ok) << records[2].reason;
}

TEST_F(SshTest, ConnectsToDeadHostsInParallelAndNamesAll) {
  for (const char* host : {"n1", "n2", "n3", "n4"}) ssh_.set_down(host, 4);
  write_text(fake_.file("hosts"), "n[1-4]\n");
  const std::string error = error_of([&] { run_sweep_again(); });
  for (const char* host : {"n1", "n2", "n3", "n4"}) {
    EXPECT_THAT(
        error, testing::HasSubstr(fmt::format("host {0}: query: ssh: cannot connect: ssh: connect to host {0}", host)));
  }
}

TEST_F(SshTest, RejectsAHostWithoutADevice) {
  ssh_.set_facts("n2", R"({"devices":[]})");
  EXPECT_EQ(error_of([&] { run_sweep_again(); }),
            "host n2: no RDMA device: --hosts sim:cib runs on a simulated cluster, --hosts null without a device");
  ssh_.set_facts("n2", R"({"devices":[{"name":"mlx5_0"},{"name":"mlx5_1"}]})");
  write_text(fake_.file("hosts"), "n1 management=n1 role=server address=127.0.0.1\nn2 management=n2 device=mlx5_7:1\n");
  EXPECT_EQ(error_of([&] { run_sweep_again(); }), "host n2: no RDMA device mlx5_7: found mlx5_0, mlx5_1");
  EXPECT_FALSE(std::filesystem::exists(fake_.file("results.jsonl")));
}

TEST_F(SshTest, InterruptWhileConnectingExitsWith130) {
  ssh_.interrupt_in("connect");
  EXPECT_EQ(run_program({"deploy", "--benchmarks", "send_rate"}),
            "exit status 130: verbscope: host n1: query: interrupted");
  EXPECT_TRUE(std::filesystem::is_empty(fake_.file("tmp")));
}

TEST_F(SshTest, InterruptWhileCopyingExitsWith130AndLeavesNoPart) {
  ssh_.interrupt_in("copy");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"deploy", "--benchmarks", "send_rate"},
        {"run", fake_.file("sweep.json"), "--out", fake_.file("results.jsonl")}}) {
    EXPECT_EQ(run_program(command), "exit status 130: verbscope: host n1: copy send_rate: interrupted") << command[0];
    EXPECT_THAT(files_left("n1"), testing::IsEmpty()) << command[0];
    EXPECT_TRUE(std::filesystem::is_empty(fake_.file("tmp"))) << command[0];
  }
  EXPECT_FALSE(std::filesystem::exists(fake_.file("results.jsonl")));
}

}  // namespace
}  // namespace verbscope
