// Processes under the preloaded library, for each way of loading libibverbs and each way to end: the same exit
// status, and correct totals in their files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "tests/drivers_patch/whole_process.hpp"

namespace verbscope::driver {
namespace {

using Counts = std::vector<std::uint64_t>;

TEST(DriverProcess, CountsEveryWayOfLoadingLibibverbs) {
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

TEST(DriverProcess, KeepsCountsHoweverTheProcessEnds) {
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

TEST(DriverProcess, ChildHasItsOwnCounts) {
  const Traced traced = run("driver_victim", "forks");
  EXPECT_EQ(traced.status, 0);
  EXPECT_EQ(requests(traced), (Counts{15, 7}));
}

TEST(DriverProcess, ThreadsHaveTheirOwnCounts) {
  const Traced traced = run("driver_victim", "threads");
  EXPECT_EQ(traced.status, 0);
  ASSERT_EQ(requests(traced), Counts{4000});
  std::size_t with_a_thousand = 0;
  for (const ThreadSummary& thread : traced.processes[0].threads) with_a_thousand += thread.sums.requests() == 1000;
  EXPECT_EQ(with_a_thousand, 4u);
}

// The checks of the only context of each process.
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

TEST(DriverProcess, VerifiesWqesInReadableQueueMemory) {
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

TEST(DriverProcess, WritesAPlantedDifferenceToTheFile) {
  const Mlx5Folder mlx5;
  const auto found = checks(run("driver_victim", "is_killed", true, "FAKE_MLX5_BYTES=48 " + mlx5.variables()));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(differences(found[0]), 4u);
  EXPECT_EQ(found[0].differences[kSize].count, 4u);
  EXPECT_EQ(found[0].differences[kSize].example.expected, 32u);
  EXPECT_EQ(found[0].differences[kSize].example.found, 48u);
}

TEST(DriverProcess, ReportsWhyQueueMemoryIsNotReadable) {
  const Mlx5Folder mlx5;
  // The program opened libibverbs, and so the function, with local symbols.
  const auto by_dlopen = checks(run("driver_victim_dlopen", "plain", true, mlx5.variables()));
  ASSERT_EQ(by_dlopen.size(), 1u);
  EXPECT_EQ(by_dlopen[0].memory, QueueMemory::no_direct_verbs);
  const auto of_other = checks(run("driver_victim", "plain", true, std::string(kVerifyVariable) + "=1 "));
  ASSERT_EQ(of_other.size(), 1u);
  EXPECT_EQ(of_other[0].memory, QueueMemory::other_adapter);
  EXPECT_TRUE(run("driver_victim", "plain").processes[0].checks.empty());
}

// Forks while another thread creates and destroys QPs, posts and polls.
TEST(DriverProcess, ChildrenCountCorrectlyWhileAThreadPosts) {
  const Mlx5Folder mlx5;
  for (const std::string& variables : {std::string(), mlx5.variables()}) {
    const Traced traced = run("driver_victim", "forks_beside_a_thread", true, variables);
    EXPECT_EQ(traced.status, 0);
    Counts expected(31, 3 + 7);
    expected[0] = std::stoull(traced.said);
    EXPECT_EQ(requests(traced), expected);
  }
}

TEST(DriverProcess, SurvivesAForkWhileADeviceIsOpened) {
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

// Ten thousand contexts with a completion queue, a QP and a region each. The library keeps only the records that it
// reports at the end.
TEST(DriverProcess, KeepsCountsOfDestroyedObjects) {
  constexpr std::uint64_t kCycles = 10000;
  const Traced plain = run("driver_victim", "comes_and_goes", false), traced = run("driver_victim", "comes_and_goes");
  EXPECT_EQ(plain.status, 0);
  EXPECT_EQ(traced.status, 0);
  EXPECT_EQ(plain.said.substr(0, 4), "0 0 ");  // no more heap, no more mappings
  EXPECT_EQ(traced.said, plain.said);          // nor more open files, in a child either
  EXPECT_EQ(requests(traced), (Counts{kCycles, 0}));
  // Records of a context: its own, shared ones for objects without room, its QP and queue, and a thread's counts for
  // each.
  constexpr std::uint64_t kEach = bytes_of_records<ContextRecord, QpRecord, QpCounts, PollCounts, RecvCounts, QpRecord,
                                                   QpCounts, CqRecord, PollCounts>();
  EXPECT_EQ(traced.used, 2 * (Arena::kFirst + bytes_of_records<ThreadRecord>() + kCycles * kEach));
}

// Valgrind checks each byte of the heap.
TEST(DriverProcess, ValgrindFindsNoError) {
  if (std::system("valgrind --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no valgrind";
  const std::string valgrind =
      "valgrind --quiet --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "
      "--error-exitcode=99 ";
  EXPECT_EQ(run("driver_victim", "comes_and_goes_a_little", true, "", valgrind).status, 0);
}

TEST(DriverProcess, RejectsFilesThatAreNotTraces) {
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
