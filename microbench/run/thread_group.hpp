// The threads of one node on this machine, their cores, and the waits of the controller: each wait watches threads and
// peers and ends with their failure.
#pragma once

#include <poll.h>

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/awaited.hpp"
#include "common/event_fd.hpp"
#include "exchange/exchange.hpp"
#include "machine/core_claims.hpp"
#include "machine/threads.hpp"
#include "microbench/run/node_run.hpp"

namespace verbscope {

// The cores of one run. Other runs on this machine avoid the cores of its threads. The controller has the other cores,
// if there are any.
class RunCores {
 public:
  // `named`: the cores of --cores; empty: the allowed cores. Warns of cores that another run holds.
  RunCores(const std::vector<int>& named, std::size_t threads, CoreClaims claims = CoreClaims());

  const std::vector<int>& threads() const { return threads_; }  // thread i has threads()[i]
  // Empty: all allowed cores.
  const std::vector<int>& controller() const { return controller_; }

 private:
  CoreClaims claims_;
  std::vector<int> threads_;
  std::vector<int> controller_;
};

class ThreadGroup {
 public:
  // Each thread of the node will be pinned to its core. All arguments must outlive the group.
  ThreadGroup(NodeRun& node, std::vector<Channel>& peers, const RunCores& cores, Picos timeout);
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;
  ~ThreadGroup();  // ends the threads

  // Starts the threads. The calling thread runs on the controller's cores until end_threads.
  void start();
  // After start: the thread IDs (gettid).
  std::vector<int> thread_ids() const;
  void turn(Phase phase) { control_.phase.store(phase, std::memory_order_relaxed); }

  // Waits until `done`: a thread makes it true (ThreadTally), or the time `end` is reached. `silent`: peers send
  // nothing meanwhile, so that a message is a failure. Throws Error if a thread fails, a peer closes, or no operation
  // completes for the timeout, unless the threads count none.
  void wait_until(const std::string& what, bool silent, const std::function<bool()>& done, Picos end = Picos::max());
  // Sets an action for each second of these waits, a sign of life for waiting peers; null: none.
  void each_second(std::function<void()> action) { each_second_ = std::move(action); }
  void wait_for(Picos time, const std::string& what);
  // From now on a peer may leave; it is skipped. Without any peer the run fails.
  void allow_peers_to_leave() { may_leave_ = true; }
  std::size_t peers_gone() const { return static_cast<std::size_t>(std::ranges::count(gone_, true)); }
  // Receives the body of the next message of a peer; nothing if it has left.
  std::optional<Json> receive_from(Channel& peer, const char* type);
  // Receives the body of the next message of a peer that may not leave.
  Json await(Channel& peer, const char* type);
  // Sends a message to a peer, unless it has left.
  void send_to(Channel& peer, const char* type, const Json& body);

  // Waits until `expected` messages have arrived, or none has arrived for a while.
  void await_messages(std::uint64_t expected);
  void end_threads();

 private:
  // Sleeps until `end` at most. Ends earlier if a thread signals, `awaited` (null: none) has sent or left, another peer
  // leaves or, if all must be `silent`, sends, or progress must be checked. Returns true if `awaited` has sent or left.
  bool sleep(Picos end, const Channel* awaited, bool silent);
  void check_all(const Channel* awaited, bool silent);
  void check_peer(Channel& peer, bool silent);
  bool gone(const Channel& peer) const { return gone_[static_cast<std::size_t>(&peer - peers_.data())]; }
  // Marks a peer that has left. Returns false if it may not leave; throws Error if it was the last.
  bool mark_gone(const Channel& peer);

  NodeRun& node_;
  std::vector<Channel>& peers_;
  const RunCores& cores_;
  Picos timeout_;
  bool may_leave_ = false;
  std::vector<bool> gone_;
  RunControl control_;
  EventFd wake_;             // signaled by the threads
  std::vector<pollfd> fds_;  // of sleep(), a member to reuse its memory
  std::function<void()> each_second_;
  std::vector<Awaited<int>> ids_;  // 0 until the thread has set its own
  std::list<PinnedThread> threads_;
  std::optional<ThreadKeptTo> controller_cores_;
};

}  // namespace verbscope
