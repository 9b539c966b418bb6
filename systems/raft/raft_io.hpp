// The I/O of a replica, as C-Raft calls it: messages over a network, entries in a log, and the time of the thread. All
// callbacks of the library come from poll() and receive(), on one thread.
//
// It adds to the library:
// - probes: heartbeats without entries, whose answers show that this replica still leads (Ongaro, "Consensus: Bridging
//   Theory and Practice", 2014, section 6.4). The library never sees the answers.
// - A follower without space takes no entries, but still follows, and says so in its results. A result says no more
//   than the message that it answers: C-Raft 0.15 reports the end of the log, which may be a rest of an earlier term
//   then.
// - Messages that arrive after later ones of their sender are dropped, as if they were lost, but for results: C-Raft
//   0.15 takes entries that its snapshot has for new ones.
// - A refusal of a pre-vote has the term of the replica that refuses. C-Raft 0.15 sends back the candidate's: of two
//   replicas, one with the longer log and one with the newer term, neither would ever win.
// - A replica that was started votes after one election time-out only. It may have promised an earlier leader not to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "common/units.hpp"
#include "systems/raft/c_raft.hpp"
#include "systems/raft/raft_log.hpp"
#include "systems/raft/raft_message.hpp"

namespace verbscope {

enum class MessageOrder : std::uint8_t {
  in_order,  // not while an earlier message is still on its way in parts
  any,
  answer,  // to an earlier message of that replica, if there is one; in any order
};

// Takes messages to the other replicas. They may be lost, reordered or repeated.
class RaftNetwork {
 public:
  virtual ~RaftNetwork() = default;
  // Memory for a message of `bytes` bytes; null if there is no connection, or an earlier message in the way. send()
  // follows at once.
  virtual std::byte* prepare(raft_id to, std::size_t bytes, MessageOrder order) = 0;
  // Sends the prepared message. RaftIo::sent() follows later, in no call of RaftIo.
  virtual void send(std::uint64_t tag) = 0;
};

// The computing time of a replica on a simulated machine; a host spends its own. Instructions of tests/perf/bench_raft
// (callgrind, C-Raft 0.15), at 6 per ns: the rate of poll_call_ns in the profiles.
struct RaftCosts {
  Picos propose{380'000};           // C-Raft takes a command
  Picos send{100'000};              // it makes a message, which is encoded
  Picos receive{250'000};           // a message is decoded, and it takes it
  Picos entry{170'000};             // an entry is written, with its checksum
  Picos apply{75'000};              // a command is applied, or a GET is looked up
  Picos access{90'000};             // a line of the store from DRAM: dram_ns of the profiles; two per command or GET
  double copy_bytes_per_ns = 12.2;  // of snapshots (RpcCosts)

  Picos look_up() const { return apply + 2 * access; }
};

constexpr std::size_t kMostReplicas = 9;

struct RaftIoOptions {
  std::vector<std::string> addresses;  // of the replicas 1, 2, ...; at most kMostReplicas
  Picos election{0};
  Picos heartbeat{0};
  std::function<std::uint64_t()> random;
  std::function<void(Picos)> compute;  // declares computing time
  RaftCosts costs{};
};

class RaftIo {
 public:
  RaftIo(RaftLog& log, RaftNetwork& network, const RaftIoOptions& options);
  RaftIo(const RaftIo&) = delete;
  RaftIo& operator=(const RaftIo&) = delete;

  raft_io& callbacks() { return io_; }

  // Ticks, and calls the callbacks of finished work. Throws Error if the storage fails.
  void poll(Picos now);
  // Writes the new entries. If the storage is fast, they are durable then, and their results are sent.
  void write();
  // When poll() has something to do, if nothing arrives before.
  Picos wake_at() const;

  // A message has arrived at `now`. `asked`: it answers a message that was sent then; 0: none.
  void receive(std::span<const std::byte> bytes, Picos now, Picos asked);
  // Call before the library takes a command that arrived at `now`.
  void advance(Picos now) { now_ = now; }
  // The time of the last call.
  Picos now() const { return now_; }
  // The message with this tag was delivered, or not.
  void sent(std::uint64_t tag, bool delivered);
  // Whether appends wait for the storage: their results are still to come.
  bool appending() const { return !appends_.empty(); }
  // From an append to a slow storage until it is durable, since the counts were cleared.
  const Histogram& append_waits() const { return append_waits_; }
  void clear_append_waits() { append_waits_.clear(); }

  // Sends a heartbeat to every other replica.
  void probe();
  // The latest time T such that a majority answered, in this term, heartbeats or entries that were sent at T or later.
  Picos majority_contact() const;

  // This log, or that of another replica by its last result, has no space.
  bool full() const { return full_; }
  bool full(raft_id replica) const { return peers_[replica - 1].full; }

  void charge(Picos time) const { options_.compute(time); }
  std::uint64_t malformed() const { return malformed_; }

  // C-Raft counts time in these.
  static constexpr Picos kTimeUnit{1'000'000};

 private:
  struct Append {
    raft_io_append* request;
    std::uint64_t number;  // of RaftLog::appends()
    Picos since;
  };
  struct Sent {
    raft_io_send* request;
    int status;
  };
  struct Peer {
    Picos contact{0};
    bool full = false;
    std::uint64_t last = 0;  // number of the last message
  };
  // The message in receive().
  struct Current {
    bool appends = false;
    std::uint64_t last = 0;  // number of its last entry
    bool probe = false;
  };

  static RaftIo& of(raft_io* io) { return *static_cast<RaftIo*>(io->impl); }
  template <class Action>
  int guarded(Action action);
  int load(raft_term* term, raft_id* voted_for, raft_snapshot** snapshot, raft_index* start, raft_entry** entries,
           std::size_t* count);
  int bootstrap(const raft_configuration& configuration);
  int send(raft_io_send* request, const raft_message& message, raft_io_send_cb done);
  int append(raft_io_append* request, std::span<const raft_entry> entries, raft_io_append_cb done);
  int snapshot_put(unsigned trailing, raft_io_snapshot_put* request, const raft_snapshot& snapshot,
                   raft_io_snapshot_put_cb done);
  void close(raft_io_close_cb done);
  int random(int low, int high) const;
  void set_callbacks();
  void probe(raft_id to);
  bool admit(DecodedMessage& decoded, Picos asked);
  void spare_entries(raft_append_entries& message);
  void complete_appends(std::uint64_t upto);
  void complete_snapshots();

  RaftLog& log_;
  RaftNetwork& network_;
  RaftIoOptions options_;
  raft_io io_{};
  raft_id id_ = 0;
  std::uint64_t number_;  // of the last message
  raft_io_tick_cb tick_ = nullptr;
  raft_io_recv_cb receive_ = nullptr;
  Picos now_{0};
  Picos tick_at_{0};
  Picos vote_at_{0};
  std::deque<Append> appends_;
  Histogram append_waits_;
  std::size_t new_entries_ = 0;  // not written yet
  std::vector<raft_io_send*> sending_;
  std::vector<Sent> sent_;
  raft_io_snapshot_put* storing_ = nullptr;
  std::vector<raft_io_snapshot_get*> loading_;
  std::vector<Peer> peers_;  // by id - 1
  Current current_{};
  bool full_ = false;
  std::uint64_t malformed_ = 0;
  std::exception_ptr failure_;  // of a callback; the library must not see exceptions
};

}  // namespace verbscope
