// A replica of the store: C-Raft over RaftIo, the state machine, and the requests of clients.
//
// A GET needs no entry of the log. The leader answers it
// - ReadMode::leader: when a majority has answered a heartbeat or entries that were sent after the GET had arrived.
//   None of them had voted for a later leader then, so that no PUT that the leader does not know was acknowledged
//   before.
// - ReadMode::lease: at once, as long as no other leader can exist: a follower that hears from the leader does not vote
//   for one election time-out, by its own clock. This needs clocks whose rates differ by less than kClockDrift, and
//   threads that do not stand still between taking the time and looking for messages. Else as ReadMode::leader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/histogram.hpp"
#include "systems/raft/raft_io.hpp"
#include "systems/raft/replicated_store.hpp"
#include "systems/rpc/rpc_server.hpp"

namespace verbscope {

enum class ReadMode : std::uint8_t { leader, lease };

// A fault that a test plants, to see whether it is found.
enum class PlantedBug : std::uint8_t { none, lost_put, stale_read, double_put };

struct ReplicaOptions {
  raft_id id = 0;
  RaftIoOptions io{};
  std::uint64_t keys = 0;            // that have memory
  std::uint32_t snapshot_every = 0;  // entries
  ReadMode reads = ReadMode::leader;
  PlantedBug planted = PlantedBug::none;
};

struct ReplicaCounts {
  std::uint64_t puts = 0;  // that this replica proposed, and that were applied
  std::uint64_t gets = 0;
  std::uint64_t elections = 0;  // begun by this replica
  std::uint64_t terms = 0;      // changes of the term
  std::uint64_t leaderships = 0;
  std::uint64_t probes = 0;  // rounds of heartbeats for GETs
  std::uint64_t snapshots = 0;
  std::uint64_t no_space = 0;  // PUTs refused
  std::uint64_t lag_samples = 0;
  std::uint64_t lag_sum = 0;  // entries that the slowest follower lacks, sampled at each PUT
  std::uint64_t lag_max = 0;
};

class Replica {
 public:
  using Answer = void (*)(void* context, const RpcHandle& handle, const StoreAnswer& answer);

  // Starts with what the log has. Throws Error. The arguments must outlive the replica.
  Replica(const ReplicaOptions& options, RaftLog& log, RaftNetwork& network, Answer function, void* context);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  ~Replica() { closing_ = true; }

  // A request of a client: it is answered once, in this or a later call.
  void request(const RpcHandle& handle, std::span<const std::byte> bytes, Picos now);
  // Makes progress. Throws Error if the replica cannot go on.
  void poll(Picos now);
  Picos wake_at() const { return io_.wake_at(); }

  RaftIo& io() { return io_; }
  bool leads() const { return raft_.state == RAFT_LEADER; }
  bool full() const { return io_.full(); }
  const ReplicaCounts& counts() const { return counts_; }
  // From the arrival of a PUT until it was applied, in this replica.
  const Histogram& commits() const { return commits_; }
  const Histogram& append_waits() const { return io_.append_waits(); }
  void clear_counts();
  const raft& c_raft() const { return raft_; }
  ReplicatedStore& store() { return store_; }

  static constexpr double kClockDrift = 0.01;

 private:
  // A PUT in the log. The library has a pointer to `request`.
  struct Proposal {
    struct raft_apply request {};
    Replica* replica = nullptr;
    RpcHandle handle{};
    Picos since{0};
  };
  struct Read {
    RpcHandle handle{};
    KeyHash key{};
    Picos since{0};
  };
  struct Library {
    Library(raft& library, raft_io& io, raft_fsm& fsm, const ReplicaOptions& options);
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() { raft_close(&raft_, nullptr); }
    raft& raft_;
  };

  void start(RaftLog& log);
  void set_callbacks();
  void put(const RpcHandle& handle, std::span<const std::byte> bytes, Picos now);
  int propose(const RpcHandle& handle, std::span<const std::byte> bytes, Picos now);
  void finish(Proposal& proposal, int status, const StoreAnswer* answer);
  void get(const Read& read, Picos now);
  void serve(const Read& read);
  void serve_reads(Picos now);
  void watch(Picos now);
  void begin_leading();
  void hand_over(Picos now);
  bool has_lease(Picos now) const;
  void note_lag();
  StoreAnswer refusal(StoreStatus status) const;
  void answer(const RpcHandle& handle, const StoreAnswer& content) {
    if (!closing_) answer_(context_, handle, content);
  }
  void plant_double(std::span<const std::byte> bytes, Picos now);

  const ReplicaOptions options_;
  const Answer answer_;
  void* const context_;
  RaftIo io_;
  ReplicatedStore store_;
  raft_fsm fsm_{};
  raft raft_{};
  StoreAnswer applied_{};
  std::deque<Proposal> proposals_;  // all, in use or free
  std::vector<Proposal*> free_;
  std::deque<Read> reads_;
  struct raft_barrier barrier_ {};
  bool barrier_waits_ = false;
  bool ready_ = false;  // an entry of the own term is applied: the state has all acknowledged PUTs
  bool lease_broken_ = false;
  Picos leading_since_{0};
  Picos probed_{0};
  Picos hand_over_at_{0};
  struct raft_transfer transfer_ {};
  int state_ = RAFT_UNAVAILABLE;
  raft_term term_ = 0;
  ReplicaCounts counts_;
  Histogram commits_;
  std::unordered_map<KeyHash, StoreValue, KeyHasher> before_;  // for the planted stale read
  std::deque<std::vector<std::byte>> doubles_;                 // for the planted double PUT
  std::uint64_t planted_ = 0;
  bool closing_ = false;
  Library library_;  // closed first
};

}  // namespace verbscope
