// Runs the threads of one node on this machine and waits, watching threads and peers, so that no wait outlasts a
// failure.
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
#include "common/fd.hpp"
#include "exchange/exchange.hpp"
#include "machine/threads.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/run_cores.hpp"

namespace verbscope {

class ThreadGroup {
 public:
  // Each thread of the node will be pinned to its core. All that is given must outlive the controller.
  ThreadGroup(NodeRun& node, std::vector<Channel>& peers, const RunCores& cores, Picos timeout);
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;
  ~ThreadGroup();  // ends the threads

  // The threads begin to run, and the calling thread keeps to the controller's cores until end_threads.
  void start();
  // After start: the numbers of the threads, as gettid yields them.
  std::vector<int> thread_ids() const;
  void turn(Phase phase) { control_.phase.store(phase, std::memory_order_relaxed); }

  // Waits until `done`, which a thread tells (ThreadTally) or the clock at `end` makes true. `silent`: peers have
  // nothing to say meanwhile, so that a message is a failure. Throws Error when a thread fails, a peer closes, or no
  // operation completes for the timeout; threads that count nothing are not expected to.
  void wait_until(const std::string& what, bool silent, const std::function<bool()>& done, Picos end = Picos::max());
  // Sets an action for each second of these waits, a sign of life for a peer that sees nothing move; null: none.
  void each_second(std::function<void()> action) { each_second_ = std::move(action); }
  void wait_for(Picos time, const std::string& what);
  // From now on a peer may leave: it is passed over, while there are others.
  void let_peers_leave() { may_leave_ = true; }
  std::size_t peers_left() const { return static_cast<std::size_t>(std::ranges::count(gone_, true)); }
  // The body of the next message of a peer; nothing when it has left.
  std::optional<Json> hear(Channel& peer, const char* type);
  // The body of the next message of a peer that may not leave.
  Json await(Channel& peer, const char* type);
  void tell(Channel& peer, const char* type, const Json& body);

  // Waits until `expected` messages have come, or none has come for a while.
  void await_messages(std::uint64_t expected);
  void end_threads();

 private:
  // Until `end` of the clock, or sooner: a thread tells something, `awaited` (null: nobody) has sent or left, another
  // peer leaves or, if all are to be `silent`, sends, or it is time to look whether anything moves. Whether `awaited`
  // did.
  bool sleep(Picos end, const Channel* awaited, bool silent);
  void check_all(const Channel* awaited, bool silent);
  void check_peer(Channel& peer, bool silent);
  bool gone(const Channel& peer) const { return gone_[static_cast<std::size_t>(&peer - peers_.data())]; }
  bool let_go(const Channel& peer);

  NodeRun& node_;
  std::vector<Channel>& peers_;
  const RunCores& cores_;
  Picos timeout_;
  bool may_leave_ = false;
  std::vector<bool> gone_;
  RunControl control_;
  EventFd wake_;                // rung by the threads
  std::vector<pollfd> polled_;  // by sleep(), kept for its memory
  std::function<void()> each_second_;
  std::vector<Awaited<int>> ids_;  // 0 until the thread has told its own
  std::list<PinnedThread> threads_;
  std::optional<ScopedAffinity> kept_;
};

}  // namespace verbscope
