// Whole processes under the preloaded library, however they come to libibverbs and however they end: the same exit
// status, and right totals in their files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/json.hpp"
#include "drivers_patch/arena.hpp"
#include "drivers_patch/trace_file.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope::driver {
namespace {

struct Traced {
  int status = 0;  // as of wait()
  std::string said;
  std::vector<Summary> processes;
  std::uint64_t used = 0;  // bytes of all their files
};

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Bytes of records in the files of traced processes.
std::uint64_t used_of(const std::filesystem::path& folder) {
  std::uint64_t used = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    alignas(TraceHeader) char header[sizeof(TraceHeader)] = {};
    if (file.path().extension() != ".trace") continue;
    std::ifstream(file.path(), std::ios::binary).read(header, sizeof header);
    used += reinterpret_cast<const TraceHeader*>(header)->used;
  }
  return used;
}

// Runs `program SCENE` with the fake libibverbs, and with the library unless `traced` is false. `variables` are further
// ones of its environment, `under` a command that runs it, each with a blank behind it.
Traced run(const std::string& program, const std::string& scene, bool traced = true, const std::string& variables = "",
           const std::string& under = "") {
  const TempDir folder;
  const std::string tests = VERBSCOPE_BINARY_DIR "/tests";
  std::string command = variables + "LD_LIBRARY_PATH=" + tests + "/fake_libibverbs ";
  if (traced) {
    command += std::string(kFolderVariable) + "=" + folder.path().string() + " " + kNicVariable +
               "=mlx5 LD_PRELOAD=" + VERBSCOPE_BINARY_DIR "/bin/" + kLibrary + " ";
  }
  Traced result;
  const std::string said = folder.path() / "said";
  result.status = std::system((command + "exec " + under + tests + "/" + program + " " + scene + " > " + said).c_str());
  result.said = text_of(said);
  result.processes = read_trace_folder(folder.path());
  result.used = used_of(folder.path());
  return result;
}

std::vector<std::uint64_t> requests(const Traced& traced) {
  std::vector<std::uint64_t> counts;
  for (const Summary& each : traced.processes) counts.push_back(each.whole.requests());
  return counts;
}

using Counts = std::vector<std::uint64_t>;

TEST(DriverProcess, EveryWayToLibibverbsIsCounted) {
  for (const char* program : {"driver_victim", "driver_victim_dlopen", "driver_victim_of_old"}) {
    SCOPED_TRACE(program);
    const Traced traced = run(program, "plain");
    EXPECT_EQ(traced.status, run(program, "plain", false).status);
    ASSERT_EQ(requests(traced), Counts{10});
    const Summary& seen = traced.processes[0];
    EXPECT_EQ(seen.whole.polled, 10u);
    EXPECT_EQ(seen.whole.send_completions, 10u);
    EXPECT_EQ(seen.whole.sends.signaled, 10u);  // sq_sig_all
    EXPECT_EQ(seen.whole.empty_polls, 1u);
    ASSERT_EQ(seen.contexts.size(), 1u);
    EXPECT_EQ(seen.contexts[0].device, "fake0");
    EXPECT_EQ(seen.contexts[0].registrations, 1u);
    EXPECT_EQ(seen.contexts[0].deregistrations, 1u);
    EXPECT_EQ(seen.contexts[0].registered_bytes, 3u * 4096);
    EXPECT_EQ(seen.contexts[0].qps_gone, 1u);
    EXPECT_TRUE(seen.wire.computed);
  }
}

TEST(DriverProcess, EveryEndKeepsTheCounts) {
  const std::pair<const char*, Counts> scenes[] = {
      {"never_closes", {4}}, {"closes_with_qp", {4}}, {"exits_in_a_callback", {5}}, {"ends_at_once", {4}},
      {"is_killed", {4}},    {"executes", {4, 10}},   {"without_verbs", {}}};
  for (const auto& [scene, expected] : scenes) {
    SCOPED_TRACE(scene);
    const Traced traced = run("driver_victim", scene);
    EXPECT_EQ(traced.status, run("driver_victim", scene, false).status);
    EXPECT_EQ(requests(traced), expected);
  }
}

TEST(DriverProcess, AChildCountsForItself) {
  const Traced traced = run("driver_victim", "forks");
  EXPECT_EQ(traced.status, 0);
  EXPECT_EQ(requests(traced), (Counts{15, 7}));
}

TEST(DriverProcess, ThreadsCountForThemselves) {
  const Traced traced = run("driver_victim", "threads");
  EXPECT_EQ(traced.status, 0);
  ASSERT_EQ(requests(traced), Counts{4000});
  std::size_t with_a_thousand = 0;
  for (const ThreadSummary& thread : traced.processes[0].threads) with_a_thousand += thread.sums.requests() == 1000;
  EXPECT_EQ(with_a_thousand, 4u);
}

// A folder that says of a device that its driver is mlx5's, as /sys does.
struct Mlx5Folder {
  Mlx5Folder() {
    std::filesystem::create_directory(folder.path() / "device");
    std::filesystem::create_symlink("/sys/bus/pci/drivers/mlx5_core", folder.path() / "device/driver");
    std::ofstream(folder.path() / "hca_type") << "MT4115\n";  // an emulated device on such an adapter has none
  }
  std::string variables() const {
    return std::string(kVerifyVariable) + "=1 FAKE_MLX5=" + folder.path().string() + " ";
  }

  TempDir folder;
};

// What was found of the only context of each process.
std::vector<CheckSummary> checks(const Traced& traced) {
  std::vector<CheckSummary> all;
  for (const Summary& each : traced.processes) {
    EXPECT_EQ(each.checks.size(), 1u);
    for (const CheckSummary& of_context : each.checks) all.push_back(of_context);
  }
  return all;
}

constexpr auto kSize = static_cast<std::size_t>(Difference::size);

std::uint64_t differences(const CheckSummary& found) {
  std::uint64_t all = 0;
  for (const CheckSummary::Found& each : found.differences) all += each.count;
  return all;
}

TEST(DriverProcess, WqesAreVerifiedWhereThereIsQueueMemory) {
  const Mlx5Folder mlx5;
  for (const auto& [scene, expected] :
       {std::pair<const char*, Counts>{"plain", {10}}, {"threads", {4000}}, {"forks", {15, 7}}}) {
    SCOPED_TRACE(scene);
    const Traced traced = run("driver_victim", scene, true, mlx5.variables());
    EXPECT_EQ(traced.status, run("driver_victim", scene, false).status);
    EXPECT_EQ(requests(traced), expected);
    Counts wqes;
    for (const CheckSummary& found : checks(traced)) {
      wqes.push_back(found.wqes);
      EXPECT_EQ(differences(found), 0u);
    }
    EXPECT_EQ(wqes, expected);
  }
}

TEST(DriverProcess, APlantedDifferenceIsInTheFile) {
  const Mlx5Folder mlx5;
  const auto found = checks(run("driver_victim", "is_killed", true, "FAKE_MLX5_BYTES=48 " + mlx5.variables()));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(differences(found[0]), 4u);
  EXPECT_EQ(found[0].differences[kSize].count, 4u);
  EXPECT_EQ(found[0].differences[kSize].example.reckoned, 32u);
  EXPECT_EQ(found[0].differences[kSize].example.found, 48u);
}

TEST(DriverProcess, WithoutQueueMemoryItSaysWhy) {
  const Mlx5Folder mlx5;
  // A libibverbs that the program opened for itself alone, and with it the function.
  const auto by_dlopen = checks(run("driver_victim_dlopen", "plain", true, mlx5.variables()));
  ASSERT_EQ(by_dlopen.size(), 1u);
  EXPECT_EQ(by_dlopen[0].memory, QueueMemory::no_direct_verbs);
  const auto of_other = checks(run("driver_victim", "plain", true, std::string(kVerifyVariable) + "=1 "));
  ASSERT_EQ(of_other.size(), 1u);
  EXPECT_EQ(of_other[0].memory, QueueMemory::other_adapter);
  EXPECT_TRUE(run("driver_victim", "plain").processes[0].checks.empty());
}

// Runs `verbscope trace --verify` on the plain scene. Yields what it says, and leaves a record at `json`.
std::string said_by_trace(const std::string& variables, const std::filesystem::path& json) {
  const TempDir folder;
  const std::string binaries = VERBSCOPE_BINARY_DIR, said = (folder.path() / "said").string();
  const std::string command = binaries + "/bin/verbscope trace --verify --json " + json.string() + " -- env " +
                              variables + "LD_LIBRARY_PATH=" + binaries + "/tests/fake_libibverbs " + binaries +
                              "/tests/driver_victim plain 2> " + said;
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 3);
  return text_of(said);
}

Json verified_of(const std::filesystem::path& json) {
  return read_json_file(json).at("counters").at(0).at("extra").at("verified");
}

TEST(DriverProcess, TraceReportsWhatItVerified) {
  const TempDir folder;
  const Mlx5Folder mlx5;
  const auto right = folder.path() / "right.jsonl", wrong = folder.path() / "wrong.jsonl",
             other = folder.path() / "other.jsonl";
  EXPECT_THAT(said_by_trace(mlx5.variables(), right),
              testing::HasSubstr("  verified     fake0: 10 WQEs, all as reckoned\n"));
  EXPECT_EQ(verified_of(right), Json::parse(R"([{"device": "fake0", "wqes": 10, "left_out": 0, "qps_without_memory": 0,
                                                 "differences": {}}])"));
  EXPECT_THAT(said_by_trace("FAKE_MLX5_BYTES=48 " + mlx5.variables(), wrong),
              testing::HasSubstr(
                  "  verified     fake0: 10 WQEs\n    10 WQEs: another size; the first of QP 0x000001 at 0, SEND "
                  "of 64 B in 1 element: 32 B reckoned, 48 B written\n"));
  EXPECT_EQ(verified_of(wrong)[0].at("differences"),
            Json::parse(R"({"size": {"count": 10, "example": {"qp_num": 1, "position": 0, "opcode": "SEND", "sges": 1,
                                                              "payload_bytes": 64, "reckoned": 32, "written": 48}}})"));
  EXPECT_THAT(
      said_by_trace("", other),
      testing::HasSubstr("  verified     fake0: no queue memory to look at: the adapter is none of mlx4 and mlx5\n"));
  EXPECT_EQ(verified_of(other)[0].at("no_memory"), "the adapter is none of mlx4 and mlx5");
}

// Whatever the other thread does when the process forks: it makes and destroys QPs, posts and polls.
TEST(DriverProcess, ChildrenCountForThemselvesBesideAThreadThatPosts) {
  const Mlx5Folder mlx5;
  for (const std::string& variables : {std::string(), mlx5.variables()}) {
    const Traced traced = run("driver_victim", "forks_beside_a_thread", true, variables);
    EXPECT_EQ(traced.status, 0);
    Counts expected(31, 3 + 7);
    expected[0] = std::stoull(traced.said);
    EXPECT_EQ(requests(traced), expected);
  }
}

TEST(DriverProcess, AForkBesideTheOpeningOfADevice) {
  const Traced traced = run("driver_victim", "forks_beside_an_opening");
  EXPECT_EQ(traced.status, 0);
  Counts counts = requests(traced);
  std::ranges::sort(counts);
  Counts expected(60, 5);
  std::fill(expected.begin() + 30, expected.end(), 7);
  EXPECT_EQ(counts, expected);
}

template <class... Records>
constexpr std::uint64_t bytes_of_records() {
  return (round_up(sizeof(Records), Arena::kStep) + ...);
}

// Each of ten thousand times a context with a completion queue, a QP and a region. The library keeps of it what it
// tells of it in the end, and nothing else.
TEST(DriverProcess, ObjectsThatComeAndGoLeaveTheirCountsAlone) {
  constexpr std::uint64_t kCycles = 10000;
  const Traced plain = run("driver_victim", "comes_and_goes", false), traced = run("driver_victim", "comes_and_goes");
  EXPECT_EQ(plain.status, 0);
  EXPECT_EQ(traced.status, 0);
  EXPECT_EQ(plain.said.substr(0, 4), "0 0 ");  // no more heap, no more mappings
  EXPECT_EQ(traced.said, plain.said);          // nor more open files, in a child either
  EXPECT_EQ(requests(traced), (Counts{kCycles, 0}));
  // Of a context: what it counts itself, and for objects without room; its QP and queue, and what a thread did with
  // each.
  constexpr std::uint64_t kEach = bytes_of_records<ContextRecord, QpRecord, QpCounts, PollCounts, RecvCounts, QpRecord,
                                                   QpCounts, CqRecord, PollCounts>();
  EXPECT_EQ(traced.used, 2 * (Arena::kFirst + bytes_of_records<ThreadRecord>() + kCycles * kEach));
}

// By a tool that sees each byte of the heap.
TEST(DriverProcess, ValgrindSeesNoLeakAndNoWrongAccess) {
  if (std::system("valgrind --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no valgrind";
  const std::string valgrind =
      "valgrind --quiet --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "
      "--error-exitcode=99 ";
  EXPECT_EQ(run("driver_victim", "comes_and_goes_a_little", true, "", valgrind).status, 0);
}

// However the program ends, nothing of what was counted stays on the machine but the record.
TEST(DriverProcess, TraceLeavesNoFiles) {
  const std::string tests = VERBSCOPE_BINARY_DIR "/tests";
  const std::pair<const char*, std::size_t> scenes[] = {{"plain", 1},     {"never_closes", 1}, {"ends_at_once", 1},
                                                        {"is_killed", 1}, {"forks", 2},        {"executes", 2}};
  for (const auto& [scene, records] : scenes) {
    SCOPED_TRACE(scene);
    const TempDir folder;
    const std::string told = folder.path() / "told", json = folder.path() / "trace.jsonl";
    const std::string command = "exec " VERBSCOPE_BINARY_DIR "/bin/verbscope trace --json " + json +
                                " -- sh -c 'ls -d $" + kFolderVariable + " > " + told + "; LD_LIBRARY_PATH=" + tests +
                                "/fake_libibverbs exec " + tests + "/driver_victim " + scene + "' 2> /dev/null";
    EXPECT_EQ(std::system(command.c_str()), run("driver_victim", scene, false).status);
    std::string counts = text_of(told);  // with a line's end
    ASSERT_GT(counts.size(), 1u);
    counts.pop_back();
    EXPECT_FALSE(std::filesystem::exists(counts));
    EXPECT_EQ(std::ranges::count(text_of(json), '\n'), static_cast<std::ptrdiff_t>(records));
  }
}

// The requests in each record of `verbscope trace OPTIONS` around a program that stays until `ask`, a command, has made
// it write one that says `so_far`, or a hundred tries have not.
std::vector<std::pair<std::string, int>> told_of_a_program_that_stays(const std::string& options,
                                                                      const std::string& ask) {
  const TempDir folder;
  const std::string tests = VERBSCOPE_BINARY_DIR "/tests";
  std::ofstream(folder.path() / "script")
      << "cd " << folder.path().string() << "\nmkfifo go\n" VERBSCOPE_BINARY_DIR "/bin/verbscope trace " << options
      << " --json json -- env LD_LIBRARY_PATH=" << tests << "/fake_libibverbs " << tests
      << "/driver_victim stays < go > ready 2> told & trace=$!\n"
      << "exec 3> go; tries=0\n"
      << "until [ -s ready ] || [ $tries = 100 ]; do sleep 0.1; tries=$((tries + 1)); done\n"
      << "until grep -qs so_far json || [ $tries = 100 ]; do " << ask
      << "; sleep 0.1; tries=$((tries + 1)); done\nexec 3>&-; wait $trace\n";
  EXPECT_EQ(std::system(("sh " + (folder.path() / "script").string()).c_str()), 0);
  std::vector<std::pair<std::string, int>> told;
  std::ifstream records(folder.path() / "json");
  for (std::string line; std::getline(records, line);) {
    const Json record = Json::parse(line);
    told.emplace_back(record.at("config").at("part"), record.at("result").at("requests"));
  }
  return told;
}

TEST(DriverProcess, TraceTellsOfARunningProgram) {
  for (const auto& [options, ask] : {std::pair{"--every 100ms", "true"}, std::pair{"", "kill -USR1 $trace"}}) {
    SCOPED_TRACE(ask);
    const auto told = told_of_a_program_that_stays(options, ask);
    ASSERT_GE(told.size(), 2u);
    EXPECT_EQ(told.front(), (std::pair<std::string, int>("so_far", 4)));
    EXPECT_EQ(told.back(), (std::pair<std::string, int>("whole", 5)));
  }
}

// Not even root's: without any capability, and with no way to one.
TEST(DriverProcess, TraceNeedsNoPrivilege) {
  const TempDir folder;
  const std::string json = folder.path() / "trace.jsonl", tests = VERBSCOPE_BINARY_DIR "/tests";
  const std::string without = getuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all " : "";
  const std::string command =
      "exec " + without + "setpriv --no-new-privs " VERBSCOPE_BINARY_DIR "/bin/verbscope trace --json " + json +
      " -- env LD_LIBRARY_PATH=" + tests + "/fake_libibverbs " + tests + "/driver_victim plain 2> /dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 3);
  EXPECT_EQ(read_json_file(json).at("result").at("requests"), 10);
}

// Its records are as those of benchmarks.
TEST(DriverProcess, OtherCommandsTakeTheRecord) {
  const TempDir folder;
  const std::string json = folder.path() / "trace.jsonl", tests = VERBSCOPE_BINARY_DIR "/tests",
                    said = folder.path() / "said",
                    verbscope = "cd " + folder.path().string() + " && exec " VERBSCOPE_BINARY_DIR "/bin/verbscope ";
  const std::string traced = "trace --nic mlx5 --json " + json + " -- env LD_LIBRARY_PATH=" + tests +
                             "/fake_libibverbs " + tests + "/driver_victim threads 2> /dev/null";
  EXPECT_EQ(std::system((verbscope + traced).c_str()), 0);
  const std::pair<std::string, std::string> commands[] = {
      {"compare " + json, "driver_victim"},
      {"diff " + json + " " + json, "equivalent"},
      {"explain " + json + " --cluster cx6", "On cx6 it would meet"},
      {"report " + json + " -o page.html", "page.html"}};
  for (const auto& [command, says] : commands) {
    SCOPED_TRACE(command);
    EXPECT_EQ(std::system((verbscope + command + " > " + said + " 2>&1").c_str()), 0);
    EXPECT_THAT(text_of(said), testing::HasSubstr(says));
  }
}

// A machine of its own that has a megabyte for the counts: so many QPs do not fit.
TEST(DriverProcess, AFullFileSystemStopsNoProgram) {
  const std::string alone = "unshare --mount --map-root-user ", tests = VERBSCOPE_BINARY_DIR "/tests";
  if (std::system((alone + "mount -t tmpfs none /dev/shm 2> /dev/null").c_str()) != 0) {
    GTEST_SKIP() << "nobody may mount here";
  }
  const TempDir folder;
  const std::string json = folder.path() / "trace.jsonl";
  const int status = std::system((alone +
                                  "sh -c 'mount -t tmpfs -o size=1m none /dev/shm && exec " VERBSCOPE_BINARY_DIR
                                  "/bin/verbscope trace --json " +
                                  json + " -- env LD_LIBRARY_PATH=" + tests + "/fake_libibverbs " + tests +
                                  "/driver_victim many_qps' 2> /dev/null")
                                     .c_str());
  EXPECT_EQ(status, 0);
  const Json record = read_json_file(json);
  EXPECT_EQ(record.at("result").at("requests"), 2000);
  EXPECT_GT(record.at("counters").at(0).at("extra").at("objects_without_room"), 1000);
}

TEST(DriverProcess, AFileOfAnotherKindIsRefused) {
  const TempDir folder;
  const auto path = folder.path() / "a.trace";
  std::ofstream(path) << std::string(8192, 'x');
  EXPECT_THROW(read_trace_file(path), Error);
  EXPECT_TRUE(read_trace_folder(folder.path()).empty());
  std::ofstream(path) << "short";
  EXPECT_THROW(read_trace_file(path), Error);
}

}  // namespace
}  // namespace verbscope::driver
