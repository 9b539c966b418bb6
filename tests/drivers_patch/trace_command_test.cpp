// `verbscope trace` of whole processes: its output, its records, and that it leaves no files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/json.hpp"
#include "tests/drivers_patch/whole_process.hpp"

namespace verbscope::driver {
namespace {

constexpr const char* kVerbscope = VERBSCOPE_BINARY_DIR "/bin/verbscope";
constexpr int kStatusOfPlain = 3;  // of the scene `plain`

// The command of a scene, with the fake libibverbs. `variables`: additional environment variables, each followed by a
// blank.
std::string victim(const std::string& scene, const std::string& variables = "") {
  return "env " + variables + "LD_LIBRARY_PATH=" + kTestPrograms + "/fake_libibverbs " + kTestPrograms +
         "/driver_victim " + scene;
}

// One trace, with a folder for its record and output.
struct Trace {
  std::string command(const std::string& program, const std::string& options = "") const {
    return std::string(kVerbscope) + " trace " + options + " --json " + json.string() + " -- " + program;
  }
  // Runs a command and returns its status as wait() does.
  int run(const std::string& words) const {
    return std::system(("exec 2> " + said.string() + "; exec " + words).c_str());
  }
  Json record() const { return read_json_file(json); }

  TempDir folder;
  std::filesystem::path json = folder.path() / "trace.jsonl", said = folder.path() / "said";
};

// Output and record of `verbscope trace --verify` for the plain scene.
std::pair<std::string, Json> verified(const std::string& variables) {
  const Trace trace;
  EXPECT_EQ(WEXITSTATUS(trace.run(trace.command(victim("plain", variables), "--verify"))), kStatusOfPlain);
  return {text_of(trace.said), trace.record().at("counters").at(0).at("extra").at("verified")};
}

TEST(TraceCommand, ReportsVerifiedWqes) {
  const Mlx5Folder mlx5;
  const auto [right_said, right] = verified(mlx5.variables());
  EXPECT_THAT(right_said, testing::HasSubstr("  verified     fake0: 10 WQEs, all as expected\n"));
  EXPECT_EQ(right, Json::parse(R"([{"device": "fake0", "wqes": 10, "left_out": 0, "qps_without_memory": 0,
                                    "differences": {}}])"));
  const auto [wrong_said, wrong] = verified("FAKE_MLX5_BYTES=48 " + mlx5.variables());
  EXPECT_THAT(wrong_said,
              testing::HasSubstr("  verified     fake0: 10 WQEs\n    10 WQEs: another size; the first of QP "
                                 "0x000001 at 0, SEND of 64 B in 1 element: 32 B expected, 48 B written\n"));
  EXPECT_EQ(wrong[0].at("differences"),
            Json::parse(R"({"size": {"count": 10, "example": {"qp_num": 1, "position": 0, "opcode": "SEND", "sges": 1,
                                                              "payload_bytes": 64, "reckoned": 32, "written": 48}}})"));
  const auto [other_said, other] = verified("");
  EXPECT_THAT(
      other_said,
      testing::HasSubstr("  verified     fake0: queue memory is not readable: the adapter is none of mlx4 and mlx5\n"));
  EXPECT_EQ(other[0].at("no_memory"), "the adapter is none of mlx4 and mlx5");
}

// However the program ends, only the record remains.
TEST(TraceCommand, LeavesNoFiles) {
  const std::pair<const char*, std::size_t> scenes[] = {{"plain", 1},     {"never_closes", 1}, {"ends_at_once", 1},
                                                        {"is_killed", 1}, {"forks", 2},        {"executes", 2}};
  for (const auto& [scene, records] : scenes) {
    SCOPED_TRACE(scene);
    const Trace trace;
    const std::string told = trace.folder.path() / "told";
    const std::string program =
        "sh -c 'ls -d $" + std::string(kFolderVariable) + " > " + told + "; exec " + victim(scene) + "'";
    EXPECT_EQ(trace.run(trace.command(program)), run("driver_victim", scene, false).status);
    std::string counts = text_of(told);  // with a line's end
    ASSERT_GT(counts.size(), 1u);
    counts.pop_back();
    EXPECT_FALSE(std::filesystem::exists(counts));
    EXPECT_EQ(std::ranges::count(text_of(trace.json), '\n'), static_cast<std::ptrdiff_t>(records));
  }
}

// The requests in each record of `verbscope trace OPTIONS` of a program that runs until the command `ask` has made
// verbscope write a record with part `so_far`, or for a hundred attempts.
std::vector<std::pair<std::string, int>> told_of_a_program_that_stays(const std::string& options,
                                                                      const std::string& ask) {
  const Trace trace;
  const std::filesystem::path script = trace.folder.path() / "script";
  std::ofstream(script) << "cd " << trace.folder.path().string() << "\nmkfifo go\n"
                        << trace.command(victim("stays"), options) << " < go > ready 2> told & trace=$!\n"
                        << "exec 3> go; tries=0\n"
                        << "until [ -s ready ] || [ $tries = 100 ]; do sleep 0.1; tries=$((tries + 1)); done\n"
                        << "until grep -qs so_far " << trace.json.string() << " || [ $tries = 100 ]; do " << ask
                        << "; sleep 0.1; tries=$((tries + 1)); done\nexec 3>&-; wait $trace\n";
  EXPECT_EQ(trace.run("sh " + script.string()), 0);
  std::vector<std::pair<std::string, int>> told;
  std::ifstream records(trace.json);
  for (std::string line; std::getline(records, line);) {
    const Json record = Json::parse(line);
    told.emplace_back(record.at("config").at("part"), record.at("result").at("requests"));
  }
  return told;
}

TEST(TraceCommand, ReportsOnARunningProgram) {
  for (const auto& [options, ask] : {std::pair{"--every 100ms", "true"}, std::pair{"", "kill -USR1 $trace"}}) {
    SCOPED_TRACE(ask);
    const auto told = told_of_a_program_that_stays(options, ask);
    ASSERT_GE(told.size(), 2u);
    EXPECT_EQ(told.front(), (std::pair<std::string, int>("so_far", 4)));
    EXPECT_EQ(told.back(), (std::pair<std::string, int>("whole", 5)));
  }
}

// Runs without any capability.
TEST(TraceCommand, NeedsNoPrivilege) {
  const Trace trace;
  const std::string without = getuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all " : "";
  EXPECT_EQ(WEXITSTATUS(trace.run(without + "setpriv --no-new-privs " + trace.command(victim("plain")))),
            kStatusOfPlain);
  EXPECT_EQ(trace.record().at("result").at("requests"), 10);
}

// Its records have the form of benchmark records.
TEST(TraceCommand, OtherCommandsAcceptTheRecord) {
  const Trace trace;
  EXPECT_EQ(trace.run(trace.command(victim("threads"), "--nic mlx5")), 0);
  const std::string json = trace.json, page = trace.folder.path() / "page.html";
  const std::pair<std::string, std::string> commands[] = {
      {"compare " + json, "driver_victim"},
      {"diff " + json + " " + json, "identical"},
      {"explain " + json + " --cluster cx6", "On cx6 the first limit is"},
      {"report " + json + " -o " + page, "page.html"}};
  for (const auto& [command, says] : commands) {
    SCOPED_TRACE(command);
    EXPECT_EQ(trace.run(std::string(kVerbscope) + " " + command + " >&2"), 0);
    EXPECT_THAT(text_of(trace.said), testing::HasSubstr(says));
  }
}

// A mount namespace with 1 MB for the counts: this many QPs do not fit.
TEST(TraceCommand, AFullFileSystemDoesNotStopTheProgram) {
  const std::string alone = "unshare --mount --map-root-user ";
  if (std::system((alone + "mount -t tmpfs none /dev/shm 2> /dev/null").c_str()) != 0) {
    GTEST_SKIP() << "nobody may mount here";
  }
  const Trace trace;
  EXPECT_EQ(trace.run(alone + "sh -c 'mount -t tmpfs -o size=1m none /dev/shm && exec " +
                      trace.command(victim("many_qps")) + "'"),
            0);
  EXPECT_EQ(trace.record().at("result").at("requests"), 2000);
  EXPECT_GT(trace.record().at("counters").at(0).at("extra").at("objects_without_room"), 1000);
}

}  // namespace
}  // namespace verbscope::driver
