// The program's side of the simulation: the channel of each thread, and requests over it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "simulate/channel/channel.hpp"
#include "simulate/channel/message.hpp"

namespace verbscope::simulate {

// True if this process takes part in a simulation.
bool simulated();
std::uint32_t nodes();
std::int32_t node();
double tsc_mhz();

// Virtual time of this thread, which has worked for `cost` since. From time to time others get a turn.
std::int64_t now_ps(std::int64_t cost_ps);

// The turns of this thread. A thread gets its channel with its first request.
Channel& own_channel();
// Takes a channel for a thread that another one is about to start; the thread calls adopt_channel.
Channel* reserve_channel();
void adopt_channel(Channel& channel);
// The calling thread ends.
void leave();
// In the child of a fork: it is another process, with one thread.
void restart_after_fork();

// One request of this thread. Put the arguments, ask(), get the results. errno is unchanged.
class Request {
 public:
  explicit Request(Operation operation);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();  // raises the signal of a virtual timer that has run out

  template <class T>
  Request& put(const T& value) {
    out_.put(value);
    return *this;
  }
  Request& put_bytes(const void* from, std::size_t bytes) {
    out_.put_bytes(from, bytes);
    return *this;
  }
  // Returns the errno of the operation, 0 on success. ENOMEM: the arguments are too long for the channel.
  int ask();
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
  std::uint32_t raise_later_ = 0;
};

// Asks for an operation with these arguments, without further results. Returns its errno.
template <class... Arguments>
int ask(Operation operation, const Arguments&... arguments) {
  Request request(operation);
  (request.put(arguments), ...);
  return request.ask();
}

}  // namespace verbscope::simulate
