// Simulated points in processes that run several of them.
#include <csignal>

#include "harness/point/point_runner.hpp"
#include "harness/process/served_program.hpp"
#include "tests/harness/program.hpp"

namespace verbscope {
namespace {

const std::string kBinaries = VERBSCOPE_BINARY_DIR "/bin";
const std::string kWriteRate = kBinaries + "/write_rate";

Record run_on_cib(const std::string& binary, const Json& params, std::uint64_t seed, ServedPrograms* programs,
                  const RoleLimits& limits = {}) {
  const BenchmarkSpec spec = describe_benchmark(binary);
  const PointRunner runner(binary, spec, RunTarget{.fabric = "sim:cib", .roles = {}, .programs = programs}, limits,
                           nullptr);
  return runner.run(Point{.benchmark = spec.name, .params = params, .seed = seed}).value();
}

// The id of the idle process; 0: none is idle.
int idle_process(ServedPrograms& programs) {
  auto program = programs.take(kWriteRate);
  if (program == nullptr) return 0;
  const int id = program->child().id();
  programs.give_back(std::move(program));
  return id;
}

TEST(ServedPrograms, GiveTheRecordsOfProcessesOfTheirOwn) {
  int seen = 0;
  for (const std::string& name : benchmark_names()) {
    const std::string binary = kBinaries + "/" + name;
    const BenchmarkSpec spec = describe_benchmark(binary);
    if (!spec.serves || spec.find("sim_threads") == nullptr) continue;
    const Json params{{"duration", "60us"}};
    ServedPrograms programs;
    programs.prepare(binary, 1);
    run_on_cib(binary, params, 2, &programs);  // must leave nothing behind
    const Record served = run_on_cib(binary, params, 1, &programs);
    const Record own = run_on_cib(binary, params, 1, nullptr);
    EXPECT_EQ(served.status, RecordStatus::ok) << name << ": " << served.reason;
    EXPECT_EQ(served.result, own.result) << name;
    EXPECT_EQ(served.config, own.config) << name;
    ++seen;
  }
  EXPECT_GE(seen, 15);
}

TEST(ServedPrograms, GoOnAfterAWrongCommand) {
  ServedPrograms programs;
  programs.prepare(kWriteRate, 1);
  const int process = idle_process(programs);
  const Record wrong = run_on_cib(kWriteRate, Json{{"post_list", 0}}, 1, &programs);
  EXPECT_EQ(wrong.status, RecordStatus::failed);
  EXPECT_THAT(wrong.reason, testing::HasSubstr("--post_list"));
  EXPECT_EQ(wrong.result.at("end"), "exit status 2");
  const Record right = run_on_cib(kWriteRate, Json{{"duration", "60us"}}, 1, &programs);
  EXPECT_EQ(right.status, RecordStatus::ok) << right.reason;
  EXPECT_EQ(idle_process(programs), process);
}

TEST(ServedPrograms, AreReplacedAfterATimeout) {
  ServedPrograms programs;
  programs.prepare(kWriteRate, 1);
  const int process = idle_process(programs);
  const Record late =
      run_on_cib(kWriteRate, Json{{"duration", "100s"}}, 1, &programs, {.timeout = std::chrono::milliseconds(100)});
  EXPECT_THAT(late.reason, testing::HasSubstr("not finished after 0.1 s"));
  EXPECT_EQ(idle_process(programs), 0);
  EXPECT_NE(kill(process, 0), 0);
  programs.prepare(kWriteRate, 1);
  EXPECT_EQ(run_on_cib(kWriteRate, Json{{"duration", "60us"}}, 1, &programs).status, RecordStatus::ok);
  EXPECT_NE(idle_process(programs), 0);
}

TEST(ServedPrograms, SayHowTheProcessEnded) {
  ServedPrograms programs;
  programs.prepare(kWriteRate, 1);
  std::signal(SIGPIPE, SIG_IGN);  // as verbscope does
  kill(idle_process(programs), SIGKILL);
  const Record record = run_on_cib(kWriteRate, Json{{"duration", "60us"}}, 1, &programs);
  EXPECT_EQ(record.status, RecordStatus::failed);
  EXPECT_THAT(record.reason, testing::HasSubstr("killed by signal 9"));
  EXPECT_EQ(idle_process(programs), 0);
}

TEST(ServedPrograms, RefuseACommandThatIsNoListOfWords) {
  TempFolder folder;
  const std::string errors = folder.file("errors");
  for (const char* line : {"x", "[1]", "{}"}) {
    const std::string command = fmt::format("echo '{}' | {} --serve 2>{}", line, kWriteRate, errors);
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2) << line;
    EXPECT_THAT(read_text(errors), testing::AllOf(testing::HasSubstr("--serve"), testing::HasSubstr(line)));
  }
}

}  // namespace
}  // namespace verbscope
