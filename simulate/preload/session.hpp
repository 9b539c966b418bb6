// The program's side of the simulation: the channel of each thread, and requests over it.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "simulate/channel/channel.hpp"
#include "simulate/channel/message.hpp"

namespace verbscope::simulate {

// True if this process takes part in a simulation, and the calling thread has not left it.
bool simulated();
// Ends the program with a line that says why it cannot take part.
[[noreturn]] void refuse(const char* what);
std::uint32_t nodes();
std::int32_t node();
double tsc_mhz();
std::uint32_t loopback();  // SharedMemory::loopback
const cpu_set_t& cores();  // SharedMemory::cores
// The number of this process among all of the simulation, in the order in which they have begun; from 1 on.
std::int32_t process_number();

// Virtual time of this thread, which has worked for `cost` since. From time to time others get a turn.
std::int64_t now_ps(std::int64_t cost_ps);
// The same, for a call on which programs spin. A program of one thread, which spins on nothing, is not charged.
void charge(std::int64_t cost_ps);
// CPU time: virtual time without what threads have waited for.
std::int64_t thread_work_ps();
std::int64_t process_work_ps();

// The turns of this thread. A thread gets its channel with its first request.
Channel& own_channel();
// Takes a channel for a thread that another one is about to start, or null. The thread calls adopt_channel, which hands
// over the first request, calls `begun`, and returns when the simulation has reached `start_ps`.
Channel* reserve_channel();
void adopt_channel(Channel& channel, std::int64_t start_ps, void (*begun)(void*), void* argument);
void give_back(Channel& reserved);
// The calling thread ends, which wakes those that wait for this address.
void leave(const void* address);
// For a process that this thread is about to start by fork(2); null: there is none. The child calls restart_after_fork:
// it is another process, with one thread.
Channel* reserve_channel_of_child();
void restart_after_fork(Channel& reserved);
// The thread is about to begin another program, which goes on with its turn; then that could not be.
void keep_for_exec();
void exec_has_failed();

// While one lives, this thread may wait in the operating system for what other threads are sure to do soon. The
// simulator waits for it.
class Patience {
 public:
  Patience() : channel_(own_channel()) { channel_.patience.fetch_add(1); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  ~Patience() { channel_.patience.fetch_sub(1); }

 private:
  Channel& channel_;
};

// The calling thread is in a request: a signal handler asks.
bool request_under_way();

struct Interrupted;

// One request of this thread. A signal handler may make one while another is under way, which then does not wait
// longer. Put the arguments, ask(), get the results. errno is unchanged.
class Request {
 public:
  explicit Request(Operation operation);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();  // raises the signals of virtual timers that have run out

  template <class T>
  Request& put(const T& value) {
    out_.put(value);
    return *this;
  }
  Request& put_bytes(const void* from, std::size_t bytes) {
    out_.put_bytes(from, bytes);
    return *this;
  }
  // Returns the errno of the operation, 0 on success. ENOMEM: the arguments are too long for the channel. EINTR: a
  // signal handler has run or will when the request ends; `restarts`: only if one is without SA_RESTART.
  int ask(bool restarts = false);
  template <class T>
  T get() {
    return in_.get<T>();
  }
  std::span<const std::byte> bytes(std::size_t count) { return in_.bytes(count); }

 private:
  Channel& channel_;
  Operation operation_;
  Writer out_;
  Reader in_{{}};
  Interrupted* interrupted_;  // the request that the signal handler has interrupted, to be restored; or null
  std::uint32_t signals_count_ = 0;
  std::array<Signal, kMaxSignals> signals_;
};

// Asks for an operation with these arguments, without further results. Returns its errno.
template <class... Arguments>
int ask(Operation operation, const Arguments&... arguments) {
  Request request(operation);
  (request.put(arguments), ...);
  return request.ask();
}

}  // namespace verbscope::simulate
