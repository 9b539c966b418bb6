// The log of a replica in a storage: its term and vote, entries, and the last snapshot. One format for all storages:
//
//   log:       [vote][vote][entry][entry] ...   each with a checksum
//   snapshot:  [snapshot]
//
// The log is only appended to: an entry with a number that exists replaces that entry and all later ones. After a crash
// the log ends at the first record that is not complete, and the bytes behind it are dropped. A vote is written over
// the older one of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <span>
#include <vector>

#include "common/histogram.hpp"
#include "systems/raft/c_raft.hpp"
#include "systems/raft/log_storage.hpp"

namespace verbscope {

class RaftLog {
 public:
  // Reads what the storages have. Throws Error. The storages must outlive the log.
  RaftLog(LogStorage& log, LogStorage& snapshot);
  RaftLog(const RaftLog&) = delete;
  RaftLog& operator=(const RaftLog&) = delete;
  // Waits for the storage.
  ~RaftLog();

  std::uint64_t term() const { return term_; }
  std::uint64_t voted_for() const { return voted_for_; }
  // Durable when it returns. Needs no space.
  void set_vote(std::uint64_t term, std::uint64_t voted_for);
  // A number that is larger than those of earlier calls, also before a restart.
  std::uint64_t next_start();

  // The numbers of the entries: from first() to next() - 1.
  std::uint64_t first() const { return next_ - places_.size(); }
  std::uint64_t next() const { return next_; }
  // All entries, as C-Raft takes them over; null if there are none.
  raft_entry* load_entries() const;
  // The last snapshot, as C-Raft takes it over; null if there is none.
  raft_snapshot* load_snapshot() const;

  // True if there is space for these entries. Commands leave some for barriers, so that a replica without space for
  // commands can still lead. Throws Error.
  bool has_room(std::span<const raft_entry> entries);
  // Appends entries from next() on. poll() writes them: they must stay until they are durable. So the messages with
  // them leave first. False: there is no space, and nothing has changed. Throws Error.
  bool append(std::span<const raft_entry> entries);
  // Drops the entries from `index` on.
  void truncate(std::uint64_t index);

  // Calls to append() so far, and how many of them are durable.
  std::uint64_t appends() const { return appends_; }
  std::uint64_t durable_appends() const { return durable_appends_; }
  // Times of the syncs of new entries to a slow storage, since the log began or the times were cleared.
  const Histogram& syncs() const { return syncs_; }
  void clear_syncs() { syncs_.clear(); }

  // Begins to store a snapshot, which must stay until it is stored. Then entries more than `trailing` before its end
  // are dropped; with 0 it replaces all entries at once.
  void begin_snapshot(const raft_snapshot& snapshot, std::uint64_t trailing);
  enum class Stored { no, yes, no_space };
  // Whether the snapshot is stored; yes and no_space are reported once.
  Stored snapshot_stored();
  void wait_for_snapshot() const { storing_.wait(); }

  // Writes what was appended, and makes it durable. Throws Error.
  void poll();

  const LogStorage& storage() const { return log_; }

 private:
  struct Unwritten {
    std::span<const raft_entry> entries;
    std::uint64_t first = 0;  // number of the first
    std::uint64_t offset = 0;
  };
  struct SnapshotName {
    std::uint64_t index = 0;
    std::uint64_t term = 0;
  };

  void read_votes();
  void read_snapshot();
  void read_entries();
  void forget_entries();
  std::uint64_t term_of(std::uint64_t index) const;
  void write_entries();
  void end_sync();
  void compact(std::uint64_t keep_from);

  LogStorage& log_;
  LogStorage& snapshot_;
  std::uint64_t term_ = 0;
  std::uint64_t voted_for_ = 0;
  std::uint64_t vote_number_ = 0;
  std::uint64_t next_ = 1;
  std::deque<std::uint64_t> places_;  // offsets of the entries' records
  std::uint64_t end_ = 0;             // of the last record
  std::vector<Unwritten> unwritten_;
  std::vector<std::byte> records_;  // being written
  std::uint64_t appends_ = 0;
  std::uint64_t syncing_appends_ = 0;
  std::uint64_t durable_appends_ = 0;
  std::future<Picos> syncing_;  // returns its time
  Histogram syncs_;
  std::future<bool> storing_;
  SnapshotName stored_{};  // in the storage
  SnapshotName next_stored_{};
  std::uint64_t trailing_ = 0;
};

}  // namespace verbscope
