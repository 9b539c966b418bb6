// The log of a replica: what it has after crashes at every byte, without space, after truncation and snapshots.
#include "systems/raft/raft_log.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/error.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Storages {
  MemoryStorage log, snapshot;
};

void append(RaftLog& log, std::uint64_t term, const std::vector<std::string>& texts) {
  std::vector<raft_entry> entries;
  for (const std::string& text : texts) {
    entries.push_back({term, RAFT_COMMAND, {const_cast<char*>(text.data()), text.size()}, nullptr});
  }
  ASSERT_TRUE(log.append(entries));
  const std::uint64_t number = log.appends();
  while (log.durable_appends() < number) log.poll();
}

// The entries as "TERM:TEXT".
std::vector<std::string> entries_of(const RaftLog& log) {
  std::vector<std::string> texts;
  raft_entry* const entries = log.load_entries();
  for (std::uint64_t i = 0; i < log.next() - log.first(); ++i) {
    texts.push_back(std::to_string(entries[i].term) + ":" +
                    std::string(static_cast<const char*>(entries[i].buf.base), entries[i].buf.len));
  }
  if (entries != nullptr) raft_free(entries[0].batch);
  raft_free(entries);
  return texts;
}

// A snapshot of these contents; its buffers are the texts.
struct TestSnapshot {
  TestSnapshot(std::uint64_t index, std::uint64_t term, std::string first, std::string second)
      : texts{std::move(first), std::move(second)} {
    for (int i = 0; i < 2; ++i) buffers[i] = {texts[i].data(), texts[i].size()};
    raft_configuration_init(&snapshot.configuration);
    raft_configuration_add(&snapshot.configuration, 1, "node0", RAFT_VOTER);
    raft_configuration_add(&snapshot.configuration, 2, "node1", RAFT_STANDBY);
    snapshot = {index, term, snapshot.configuration, 1, buffers, 2};
  }
  ~TestSnapshot() { raft_configuration_close(&snapshot.configuration); }
  std::string texts[2];
  raft_buffer buffers[2];
  raft_snapshot snapshot{};
};

void store(RaftLog& log, const TestSnapshot& test, std::uint64_t trailing) {
  log.begin_snapshot(test.snapshot, trailing);
  RaftLog::Stored stored = RaftLog::Stored::no;
  while (stored == RaftLog::Stored::no) {
    stored = log.snapshot_stored();
    std::this_thread::yield();
  }
  ASSERT_EQ(stored, RaftLog::Stored::yes);
}

std::string snapshot_of(const RaftLog& log) {
  raft_snapshot* const snapshot = log.load_snapshot();
  if (snapshot == nullptr) return "none";
  std::string text = std::to_string(snapshot->index) + ":" + std::to_string(snapshot->term) + ":" +
                     std::string(static_cast<const char*>(snapshot->bufs[0].base), snapshot->bufs[0].len);
  for (unsigned i = 0; i < snapshot->configuration.n; ++i) {
    const raft_server& server = snapshot->configuration.servers[i];
    text += ":" + std::string(server.address) + "=" + std::to_string(server.role);
  }
  raft_configuration_close(&snapshot->configuration);
  raft_free(snapshot->bufs[0].base);
  raft_free(snapshot->bufs);
  raft_free(snapshot);
  return text;
}

std::vector<std::byte> content(const MemoryStorage& storage) {
  std::vector<std::byte> bytes(storage.size());
  storage.read(0, bytes);
  return bytes;
}
void set_content(MemoryStorage& storage, const std::vector<std::byte>& bytes) {
  ASSERT_TRUE(storage.replace(bytes));
}

TEST(RaftLog, HasAfterARestartWhatItHadBefore) {
  Storages storages;
  {
    RaftLog log(storages.log, storages.snapshot);
    EXPECT_EQ(log.term(), 0u);
    EXPECT_EQ(log.first(), 1u);
    EXPECT_EQ(log.next(), 1u);
    log.set_vote(3, 2);
    append(log, 3, {"a", "", "four"});
    append(log, 4, {std::string(5000, 'x')});
    EXPECT_EQ(log.durable_appends(), 2u);
    log.set_vote(4, 0);
  }
  RaftLog log(storages.log, storages.snapshot);
  EXPECT_EQ(log.term(), 4u);
  EXPECT_EQ(log.voted_for(), 0u);
  EXPECT_THAT(entries_of(log), ElementsAre("3:a", "3:", "3:four", "4:" + std::string(5000, 'x')));
  EXPECT_EQ(snapshot_of(log), "none");
}

TEST(RaftLog, ReplacesEntriesAfterATruncation) {
  Storages storages;
  {
    RaftLog log(storages.log, storages.snapshot);
    append(log, 1, {"a", "b", "c", "d"});
    log.truncate(3);
    append(log, 2, {"C"});
    EXPECT_THAT(entries_of(log), ElementsAre("1:a", "1:b", "2:C"));
  }
  RaftLog log(storages.log, storages.snapshot);
  EXPECT_THAT(entries_of(log), ElementsAre("1:a", "1:b", "2:C"));
  EXPECT_EQ(log.next(), 4u);
  log.truncate(1);
  append(log, 3, {"A"});
  RaftLog again(storages.log, storages.snapshot);
  EXPECT_THAT(entries_of(again), ElementsAre("3:A"));
}

// The process, or the machine, ends while a record is written: any beginning of it may be there, and bytes behind it.
TEST(RaftLog, LosesOnlyTheTornRecordAtEveryByte) {
  Storages storages;
  std::size_t whole = 0;
  {
    RaftLog log(storages.log, storages.snapshot);
    log.set_vote(7, 1);
    append(log, 1, {"one", "two"});
    whole = storages.log.size();
    append(log, 2, {"three is torn", "four too"});
  }
  std::vector<std::byte> full(storages.log.size());
  storages.log.read(0, full);
  // reserve() leaves room behind the records
  const auto used = std::ranges::find_if(full.rbegin(), full.rend(), [](std::byte b) { return b != std::byte{0}; });
  const auto end = static_cast<std::size_t>(full.rend() - used);
  ASSERT_GT(end, 128u);
  std::size_t at_least_two = 0;
  for (std::size_t cut = 128; cut <= end; ++cut) {
    for (const bool longer : {false, true}) {  // the file ends there, or zeros follow
      std::vector<std::byte> torn(full.begin(), full.begin() + static_cast<std::ptrdiff_t>(cut));
      if (longer) torn.resize(full.size());
      Storages crashed;
      set_content(crashed.log, torn);
      {
        RaftLog log(crashed.log, crashed.snapshot);
        const std::vector<std::string> found = entries_of(log);
        const std::vector<std::string> all = {"1:one", "1:two", "2:three is torn", "2:four too"};
        ASSERT_LE(found.size(), all.size());
        EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin())) << cut;
        EXPECT_EQ(log.term(), 7u);
        at_least_two += found.size() >= 2;
        append(log, 9, {"new"});  // goes where the torn record was
      }
      RaftLog again(crashed.log, crashed.snapshot);
      EXPECT_EQ(entries_of(again).back(), "9:new") << cut;
    }
  }
  EXPECT_GT(at_least_two, 0u);
  EXPECT_GT(whole, 128u);
}

TEST(RaftLog, EndsAtADamagedByte) {
  Storages storages;
  {
    RaftLog log(storages.log, storages.snapshot);
    append(log, 1, {"one", "two", "three"});
  }
  const std::vector<std::byte> good = content(storages.log);
  for (std::size_t at = 128; at < 128 + 3 * 48; ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x10};
    Storages damaged;
    set_content(damaged.log, bad);
    RaftLog log(damaged.log, damaged.snapshot);
    EXPECT_EQ(entries_of(log).size(), (at - 128) / 48) << at;
  }
}

TEST(RaftLog, KeepsTheOlderVoteIfTheNewerIsTorn) {
  Storages storages;
  {
    RaftLog log(storages.log, storages.snapshot);
    log.set_vote(5, 1);
  }
  const std::vector<std::byte> before = content(storages.log);
  {
    RaftLog log(storages.log, storages.snapshot);
    log.set_vote(6, 2);
  }
  const std::vector<std::byte> after = content(storages.log);
  for (std::size_t cut = 0; cut <= 128; ++cut) {
    std::vector<std::byte> torn = before;
    std::copy_n(after.begin(), cut, torn.begin());
    Storages crashed;
    set_content(crashed.log, torn);
    const RaftLog log(crashed.log, crashed.snapshot);
    EXPECT_TRUE((log.term() == 5 && log.voted_for() == 1) || (log.term() == 6 && log.voted_for() == 2)) << cut;
  }
}

TEST(RaftLog, RefusesEntriesWithoutSpaceAndKeepsTheOthers) {
  Storages storages;
  RaftLog log(storages.log, storages.snapshot);
  append(log, 1, {"a"});
  storages.log.limit(storages.log.size() + 100);
  const std::string text(200, 'x');
  const raft_entry command{1, RAFT_COMMAND, {const_cast<char*>(text.data()), text.size()}, nullptr};
  EXPECT_FALSE(log.append({&command, 1}));
  EXPECT_FALSE(log.has_room({&command, 1}));
  EXPECT_THAT(entries_of(log), ElementsAre("1:a"));
  // A barrier and a vote have room that commands have not.
  std::string nothing(8, '0');
  const raft_entry barrier{1, RAFT_BARRIER, {nothing.data(), nothing.size()}, nullptr};
  EXPECT_TRUE(log.append({&barrier, 1}));
  log.poll();
  log.set_vote(9, 3);
  storages.log.limit(1 << 20);
  EXPECT_TRUE(log.has_room({&command, 1}));
  EXPECT_TRUE(log.append({&command, 1}));
  log.poll();
  RaftLog again(storages.log, storages.snapshot);
  EXPECT_EQ(entries_of(again).size(), 3u);
  EXPECT_EQ(again.term(), 9u);
}

TEST(RaftLog, ASnapshotDropsTheEntriesBeforeIt) {
  Storages storages;
  {
    RaftLog log(storages.log, storages.snapshot);
    log.set_vote(2, 1);
    append(log, 1, {"a", "b", "c", "d", "e", "f"});
    const std::uint64_t before = storages.log.size();
    store(log, {5, 1, "state ", "of five"}, 2);
    EXPECT_THAT(entries_of(log), ElementsAre("1:d", "1:e", "1:f"));
    EXPECT_LT(storages.log.size(), before);
    append(log, 2, {"g"});
  }
  RaftLog log(storages.log, storages.snapshot);
  EXPECT_EQ(log.first(), 4u);
  EXPECT_EQ(log.term(), 2u);
  EXPECT_THAT(entries_of(log), ElementsAre("1:d", "1:e", "1:f", "2:g"));
  EXPECT_EQ(snapshot_of(log), "5:1:state of five:node0=1:node1=0");
}

TEST(RaftLog, ASnapshotOfALeaderReplacesAllEntries) {
  Storages storages;
  {
    RaftLog log(storages.log, storages.snapshot);
    append(log, 1, {"a", "b"});
    store(log, {10, 3, "x", "y"}, 0);
    EXPECT_EQ(log.first(), 11u);
    EXPECT_EQ(log.next(), 11u);
    append(log, 3, {"eleven"});
  }
  RaftLog log(storages.log, storages.snapshot);
  EXPECT_EQ(log.first(), 11u);
  EXPECT_THAT(entries_of(log), ElementsAre("3:eleven"));
}

// The snapshot is stored, and the process ends before the log is rewritten.
TEST(RaftLog, DropsEntriesThatAStoredSnapshotContradicts) {
  for (const bool agrees : {false, true}) {
    Storages storages;
    std::vector<std::byte> old;
    {
      RaftLog log(storages.log, storages.snapshot);
      append(log, agrees ? 3 : 1, {"a", "b", "c", "d"});
      old = content(storages.log);
      store(log, {3, 3, "x", "y"}, 0);
    }
    set_content(storages.log, old);
    RaftLog log(storages.log, storages.snapshot);
    if (agrees) {
      EXPECT_THAT(entries_of(log), ElementsAre("3:a", "3:b", "3:c", "3:d"));
    } else {
      EXPECT_EQ(log.first(), 4u);
      EXPECT_EQ(log.next(), 4u);
    }
  }
}

TEST(RaftLog, ASnapshotWithoutSpaceChangesNothing) {
  Storages storages;
  RaftLog log(storages.log, storages.snapshot);
  append(log, 1, {"a", "b"});
  storages.snapshot.limit(64);
  const TestSnapshot test(2, 1, std::string(100, 's'), "");
  log.begin_snapshot(test.snapshot, 1);
  EXPECT_EQ(log.snapshot_stored(), RaftLog::Stored::no_space);
  EXPECT_EQ(log.snapshot_stored(), RaftLog::Stored::no);
  EXPECT_EQ(snapshot_of(log), "none");
  EXPECT_THAT(entries_of(log), ElementsAre("1:a", "1:b"));
}

TEST(RaftLog, RefusesADamagedSnapshot) {
  Storages storages;
  {
    RaftLog log(storages.log, storages.snapshot);
    append(log, 1, {"a"});
    store(log, {1, 1, "state", ""}, 1);
  }
  std::vector<std::byte> bad = content(storages.snapshot);
  bad.back() ^= std::byte{1};
  bad[60] ^= std::byte{1};
  set_content(storages.snapshot, bad);
  try {
    RaftLog log(storages.log, storages.snapshot);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the snapshot is damaged"));
  }
}

TEST(RaftLog, AFileSurvivesItsProcess) {
  const TempDir dir;
  const std::string path = dir / "log", snapshot_path = dir / "log.snapshot";
  for (const bool durable : {true, false}) {
    {
      FileStorage file(path, durable), snapshot(snapshot_path, durable);
      RaftLog log(file, snapshot);
      log.set_vote(2, 3);
      for (int i = 0; i < 100; ++i) append(log, 2, {"entry " + std::to_string(i)});
      while (log.durable_appends() < log.appends()) log.poll();
      store(log, {log.next() - 51, 2, "state", ""}, 10);
      EXPECT_EQ(log.next() - log.first(), 60u);
      append(log, 2, {"last"});
      while (log.durable_appends() < log.appends()) log.poll();
    }
    FileStorage file(path, durable), snapshot(snapshot_path, durable);
    RaftLog log(file, snapshot);
    EXPECT_EQ(log.term(), 2u);
    EXPECT_EQ(log.voted_for(), 3u);
    EXPECT_EQ(entries_of(log).size(), 61u);
    EXPECT_EQ(entries_of(log).back(), "2:last");
  }
}

TEST(RaftLog, TwoProcessesCannotUseOneFile) {
  const TempDir dir;
  const FileStorage first(dir / "log", true);
  try {
    const FileStorage second(dir / "log", true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("another process uses this file"));
  }
}

// /dev/full takes no bytes, but is no regular file.
TEST(RaftLog, RefusesWhatIsNoFile) {
  try {
    const FileStorage file("/dev/full", true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a regular file"));
  }
}

}  // namespace
}  // namespace verbscope
