// Runs of one point: every behaviour of the benchmark's processes gives one record.
#include "harness/point/point_runner.hpp"

#include "harness/sweep/benchmarks.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using std::chrono::milliseconds;

PointRunner runner_for(const FakeBenchmark& fake, RunTarget target = {.fabric = "null", .roles = {}},
                       milliseconds timeout = milliseconds(20'000)) {
  return PointRunner(fake.binary(), describe_benchmark(fake.binary()), std::move(target),
                     RoleLimits{.timeout = timeout}, nullptr);
}

Record run(const FakeBenchmark& fake, RunTarget target = {.fabric = "null", .roles = {}},
           milliseconds timeout = milliseconds(20'000)) {
  Point point;
  point.benchmark = "send_rate";
  point.params = Json{{"size", 64}, {"validate", true}};
  point.repetition = 1;
  point.seed = 8;
  return runner_for(fake, std::move(target), timeout).run(point).value();
}

std::string failure(const std::string& body, milliseconds timeout = milliseconds(20'000)) {
  const FakeBenchmark fake(body);
  const Record record = run(fake, {.fabric = "null", .roles = {}}, timeout);
  EXPECT_EQ(record.status, RecordStatus::failed);
  EXPECT_EQ(record.config.at("size"), 64);
  EXPECT_EQ(record.config.at("point").at("seed"), 8);
  EXPECT_NO_THROW(to_json(record));
  return record.reason;
}

RunTarget two_hosts() {
  return {.fabric = "verbs",
          .roles = assign_roles(parse_hosts("localhost role=server device=dev0:2 address=127.0.0.1\n"
                                            "127.0.0.1 role=client device=dev1 gid_index=3\n",
                                            "h"),
                                "h")};
}

TEST(PointRunner, ReturnsTheRecordWithThePoint) {
  const FakeBenchmark fake(std::string("echo \"$all\" > $dir/arguments\n") + kGood);
  const Record record = run(fake);
  EXPECT_EQ(record.status, RecordStatus::ok);
  EXPECT_EQ(record.result.at("rate_mops"), 10.0);
  EXPECT_EQ(
      point_key(record.config.at("point")),
      R"({"benchmark":"send_rate","fabric":"null","params":{"size":64,"validate":true},"repetition":1,"seed":8})");
  EXPECT_THAT(read_text(fake.file("arguments")),
              testing::StartsWith("--fabric=null --seed=8 --size=64 --validate=true --out_json_file="));
}

TEST(PointRunner, RecordsStatusCommandAndLastLinesOfAFailure) {
  const FakeBenchmark fake("echo first >&2; echo 'send_rate: no such device' >&2; exit 3");
  const Record record = run(fake);
  EXPECT_EQ(record.reason, "exit status 3: send_rate: no such device");
  EXPECT_EQ(record.result.at("end"), "exit status 3");
  EXPECT_EQ(record.result.at("output_tail").size(), 2u);
  EXPECT_EQ(record.result.at("command").at(0), fake.binary().string());
}

TEST(PointRunner, EndsABenchmarkAtTheTimeout) {
  const FakeBenchmark fake("echo $$ > $dir/pid; sleep 1000");
  EXPECT_EQ(run(fake, {.fabric = "null", .roles = {}}, milliseconds(500)).reason, "not finished after 0.5 s");
  EXPECT_TRUE(is_gone_soon(std::stoi(read_text(fake.file("pid")))));
}

TEST(PointRunner, RejectsAMalformedRecord) {
  EXPECT_THAT(failure("echo '<html>' > $out"), testing::StartsWith("exit status 0, but its record is broken: "));
  EXPECT_EQ(failure("true"), "exit status 0, but it wrote 0 records instead of one");
  EXPECT_EQ(failure("cat $record $record > $out"), "exit status 0, but it wrote 2 records instead of one");
  EXPECT_THAT(failure("sed s,record/1,record/9, $record > $out"), testing::HasSubstr("its record cannot be read: "));
}

TEST(PointRunner, RejectsATruncatedRecord) {
  EXPECT_EQ(failure("head -c 100 $record > $out; kill -9 $$"), "killed by signal 9 (Killed)");
}

TEST(PointRunner, ReportsAFailedExitDespiteAGoodRecord) {
  EXPECT_EQ(failure(std::string(kGood) + "; exit 5"), "exit status 5");
}

TEST(PointRunner, KeepsTheFailedRecordOfTheBenchmark) {
  EXPECT_EQ(failure("sed 's/\"ok\",\"reason\":\"\"/\"failed\",\"reason\":\"peer is gone\"/' $record > $out; exit 1"),
            "peer is gone");
}

TEST(PointRunner, RecordsAMissingBinaryAsAFailure) {
  const FakeBenchmark fake(kGood);
  const PointRunner runner = runner_for(fake);
  std::filesystem::remove(fake.binary());
  const Record record = runner.run({}).value();
  EXPECT_THAT(record.reason, testing::HasSubstr("send_rate: No such file or directory"));
}

// The terminal's Ctrl-C also ends a benchmark that was just forked.
TEST(PointRunner, AnInterruptIsNotAFailure) {
  Interrupt interrupt;
  const FakeBenchmark fake("kill -INT $PPID; kill -INT $$");
  const PointRunner runner(fake.binary(), describe_benchmark(fake.binary()), {.fabric = "null", .roles = {}},
                           {.timeout = std::chrono::seconds(60)}, &interrupt);
  EXPECT_FALSE(runner.run({}).has_value());
}

// scancel signals the processes of a job in turn: the benchmark's end may be seen before the own signal.
TEST(PointRunner, AnInterruptThatReachesTheBenchmarkFirstIsNotAFailure) {
  Interrupt interrupt;
  const FakeBenchmark fake(
      "setsid sh -c \"touch $dir/up; while kill -0 $$; do :; done; kill -TERM $PPID\" > /dev/null 2>&1 &\n"
      "while [ ! -e $dir/up ]; do :; done; kill -TERM $$");
  const PointRunner runner(fake.binary(), describe_benchmark(fake.binary()), {.fabric = "null", .roles = {}},
                           {.timeout = std::chrono::seconds(60)}, &interrupt);
  EXPECT_FALSE(runner.run({}).has_value());
}

TEST(PointRunner, DescribeReportsTheLastLineOfAFailure) {
  TempFolder folder;
  write_text(folder.file("send_rate"), "#!/bin/sh\necho oops >&2\nexit 2\n");
  std::filesystem::permissions(folder.file("send_rate"), std::filesystem::perms::owner_all);
  EXPECT_EQ(error_of([&] { describe_benchmark(folder.file("send_rate")); }),
            "send_rate --describe: exit status 2: oops");
}

// Both roles of a fake: the server prints its port and continues with `server`, the client with `client`. $role is the
// role.
std::string both_roles(const std::string& server, const std::string& client) {
  return "role=client; case \"$all\" in *--port=0*) role=server;; esac\n"
         "echo \"$all\" > $dir/$role; echo $$ > $dir/$role.pid; echo \"$VERBSCOPE_SECRET\" > $dir/$role.secret\n"
         "if [ $role = server ]; then echo starting; echo 'listening on port 4242'; " +
         server + "\nelse " + client + "\nfi";
}

TEST(PointRunner, CombinesServerAndClientInOneRecord) {
  const FakeBenchmark fake(both_roles(kGood, kGood), "verbs");
  const Record record = run(fake, two_hosts());
  EXPECT_EQ(record.status, RecordStatus::ok) << record.reason;
  ASSERT_EQ(record.result.at("clients").size(), 1u);
  EXPECT_EQ(record.result.at("clients").at(0).at("host"), "127.0.0.1");
  EXPECT_EQ(record.result.at("clients").at(0).at("result").at("rate_mops"), 10.0);
  EXPECT_THAT(read_text(fake.file("server")),
              testing::HasSubstr("--ib_dev=dev0:2 --clients=1 --port=0 --listen=127.0.0.1 --out_json_file="));
  EXPECT_THAT(read_text(fake.file("client")),
              testing::HasSubstr("--ib_dev=dev1 --gid_index=3 --clients=1 --port=4242 127.0.0.1 --out_json_file="));
  EXPECT_EQ(read_text(fake.file("server.secret")).size(), 33u);  // 128 bits in hexadecimal, and the newline
  EXPECT_EQ(read_text(fake.file("server.secret")), read_text(fake.file("client.secret")));
}

TEST(PointRunner, BlamesAFailedClientAndEndsTheServer) {
  const FakeBenchmark fake(both_roles("sleep 1000", "echo 'no route' >&2; exit 4"), "verbs");
  const Record record = run(fake, two_hosts());
  EXPECT_EQ(record.reason, "client 0 on 127.0.0.1: exit status 4: no route");
  EXPECT_EQ(record.result.at("others"), Json::array({"server on localhost: ended by verbscope"}));
  EXPECT_TRUE(is_gone_soon(std::stoi(read_text(fake.file("server.pid")))));
}

TEST(PointRunner, BlamesTheProcessThatDied) {
  const FakeBenchmark fake(
      both_roles("while ! [ -e $dir/dying ]; do sleep 0.01; done\n"
                 "sed 's/\"ok\",\"reason\":\"\"/\"failed\",\"reason\":\"peer is gone\"/' $record > $out; exit 1",
                 ": > $out; touch $dir/dying; sleep 0.5; kill -9 $$"),  // benchmarks open their record first
      "verbs");
  const Record record = run(fake, two_hosts());
  EXPECT_EQ(record.reason, "client 0 on 127.0.0.1: killed by signal 9 (Killed)");
  EXPECT_EQ(record.result.at("others"), Json::array({"server on localhost: peer is gone"}));
}

TEST(PointRunner, StartsNoClientWithoutAListeningServer) {
  const FakeBenchmark fake("echo hello; sleep 1000", "verbs");
  EXPECT_EQ(run(fake, two_hosts(), milliseconds(500)).reason, "server on localhost: not listening after 0.5 s");
  const FakeBenchmark quitter("echo 'port taken' >&2; exit 1", "verbs");
  EXPECT_EQ(run(quitter, two_hosts()).reason, "server on localhost: exit status 1: port taken");
  const FakeBenchmark early(kGood, "verbs");
  EXPECT_EQ(run(early, two_hosts()).reason, "server on localhost: exited before it listened");
}

TEST(PointRunner, BlamesTheRunningRoleAtATimeout) {
  const FakeBenchmark fake(both_roles(kGood, "sleep 1000"), "verbs");
  EXPECT_EQ(run(fake, two_hosts(), milliseconds(1000)).reason, "client 0 on 127.0.0.1: not finished after 1 s");
}

TEST(PointRunner, ParsesFabricsAndHostsFilesOfThisMachine) {
  EXPECT_EQ(parse_target("sim:cib").fabric, "sim:cib");
  EXPECT_EQ(parse_target("null").fabric, "null");
  TempFolder folder;
  write_text(folder.file("hosts"), "localhost\n");
  const RunTarget target = parse_target(folder.file("hosts"));
  EXPECT_EQ(target.fabric, "verbs");
  EXPECT_EQ(target.roles->server.name, "localhost");
  EXPECT_NO_THROW(require_local(target, "h"));
  EXPECT_EQ(parse_target("localhost").roles->server.name, "localhost") << "which needs no file";
  write_text(folder.file("hosts"), "# far away\nother.example\n");
  const RunTarget far = parse_target(folder.file("hosts"));
  EXPECT_EQ(error_of([&] { require_local(far, "h"); }),
            "h:2: host other.example is not this machine: use --launcher ssh or slurm");
  EXPECT_EQ(
      error_of([] { parse_target("sin:cib"); }),
      R"(--hosts: expected sim:NAME, null, host, slurm, localhost, a hosts file or hosts such as a,b, got "sin:cib", which is not a file)");
}

TEST(PointRunner, RejectsAnUnknownClusterAndListsTheKnownOnes) {
  EXPECT_THAT(error_of([] { parse_target("sim:cibb"); }),
              testing::AllOf(testing::HasSubstr("cluster \"cibb\""), testing::HasSubstr("did you mean cib?"),
                             testing::HasSubstr(shipped_clusters()), testing::HasSubstr(".json")));
  TempFolder folder;
  EXPECT_THAT(error_of([&] { parse_target("sim:" + folder.file("no.json")); }), testing::HasSubstr("no.json"));
  write_text(folder.file("bad.json"), R"({"name": "bad"})");
  EXPECT_THAT(error_of([&] { parse_target("sim:" + folder.file("bad.json")); }), testing::HasSubstr("bad.json"));
}

}  // namespace
}  // namespace verbscope
