// Whole processes under the preloaded library, however they come to libibverbs and however they end: the same exit
// status, and right totals in their files.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "drivers_patch/trace_file.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope::driver {
namespace {

struct Traced {
  int status = 0;  // as of wait()
  std::vector<Summary> processes;
};

// Runs `program SCENE` with the fake libibverbs, and with the library unless `traced` is false.
Traced run(const std::string& program, const std::string& scene, bool traced = true) {
  const TempDir folder;
  const std::string tests = VERBSCOPE_BINARY_DIR "/tests";
  std::string command = "LD_LIBRARY_PATH=" + tests + "/fake_libibverbs ";
  if (traced) {
    command += std::string(kFolderVariable) + "=" + folder.path().string() + " " + kNicVariable +
               "=mlx5 LD_PRELOAD=" + VERBSCOPE_BINARY_DIR "/bin/" + kLibrary + " ";
  }
  Traced result;
  result.status = std::system((command + "exec " + tests + "/" + program + " " + scene).c_str());
  result.processes = read_trace_folder(folder.path());
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

TEST(DriverProcess, ChildrenCountForThemselvesWhileAThreadOfTheParentPosts) {
  const Traced traced = run("driver_victim", "forks_beside_a_thread");
  EXPECT_EQ(traced.status, 0);
  EXPECT_EQ(requests(traced), (Counts{20000, 7, 7, 7}));
}

TEST(DriverProcess, ThreadsCountForThemselves) {
  const Traced traced = run("driver_victim", "threads");
  EXPECT_EQ(traced.status, 0);
  ASSERT_EQ(requests(traced), Counts{4000});
  std::size_t with_a_thousand = 0;
  for (const ThreadSummary& thread : traced.processes[0].threads) with_a_thousand += thread.sums.requests() == 1000;
  EXPECT_EQ(with_a_thousand, 4u);
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
