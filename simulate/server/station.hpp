// Where the simulator waits, in real time, for the programs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>

#include "simulate/channel/channel.hpp"

namespace verbscope::simulate {

// What a thread that has the turn does.
enum class Conduct {
  asks,     // it has handed over a request
  silent,   // it works without calls for longer than its limit: it watches memory
  blocked,  // it sleeps in the operating system
  gone      // its process has ended
};

class Station {
 public:
  // `silence_ns`: CPU time without a call after which a thread counts as silent. `stop`: ends every wait. Before
  // another process gets the turn, `leave` is called with the node of the one that had it.
  Station(SharedMemory& memory, std::int64_t silence_ns, std::stop_token stop, std::function<void(int)> leave)
      : memory_(memory), silence_ns_(silence_ns), stop_(std::move(stop)), leave_(std::move(leave)) {}
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // Hands the turn to the thread.
  void give(Channel& channel);
  // Waits until the thread that has the turn asks, or shows that it will not soon. `may_be_silent`: others can write to
  // its memory, so that it may watch that; else it works.
  Conduct watch(const Channel& channel, bool may_be_silent);
  // Waits until a thread of `process`, which has been started, has begun, or the process has ended.
  void await_start(int process);
  // Waits until `process`, which has got a signal, has ended or runs a handler, at most for a moment. True if it may
  // have ended. `process` may be 0 or negative, as of kill(2).
  bool await_reaction(int process);
  // True if a request has arrived, or a thread has come, since the last call.
  bool has_news() {
    const std::uint32_t now = memory_.requests.load(std::memory_order_acquire);
    return now != std::exchange(seen_, now);
  }
  // Waits for news, at most for a millisecond.
  void wait_for_news();
  std::int32_t core() const { return memory_.core; }
  bool stopped() const { return stop_.stop_requested(); }

 private:
  void sleep(std::uint32_t seen, std::int64_t limit_ns);

  SharedMemory& memory_;
  std::int64_t silence_ns_;
  std::stop_token stop_;
  std::uint32_t seen_ = 0;
  std::function<void(int)> leave_;
  std::int32_t process_ = 0;  // that had the turn last, and its node
  std::int32_t node_ = 0;
};

}  // namespace verbscope::simulate
