// Accepts the clients of a server. Several handshakes run at a time. A connection that turns out not to be a client
// (silent, invalid messages, wrong secret, closed) is dropped with a warning on standard error, while the others
// continue.
#pragma once

#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "common/fd.hpp"
#include "common/terminal.hpp"
#include "exchange/channel.hpp"
#include "exchange/handshake.hpp"
#include "exchange/tcp.hpp"
#include "exchange/terms.hpp"

namespace verbscope {

// Time limit of a handshake. A client sends without user input and needs milliseconds.
inline constexpr std::chrono::seconds kHandshakePatience{5};
// Maximum number of handshakes at a time. A further connection replaces the oldest one.
inline constexpr std::size_t kMaxHandshakes = 64;

class Reception {
 public:
  // All arguments must outlive this object. `patience`: time limit of a handshake.
  Reception(const Fd& listener, const Terms& own, const std::string& secret, int clients,
            Picos patience = kHandshakePatience);

  // Waits for the clients until `deadline`; channel i is that of client i. Throws Error at the deadline, or for a
  // client with other terms; the accepted clients receive the reason.
  std::vector<Channel> receive(const Deadline& deadline);

 private:
  // A connection during its handshake.
  struct Caller {
    Caller(Fd its_socket, const std::string& secret, Picos patience);

    Fd socket;
    std::string name;
    ServerHandshake handshake;
    Deadline deadline;
    std::vector<std::byte> bytes;  // of the incoming message, as far as its length is known
    std::size_t filled = 0;
  };
  using Place = std::list<Caller>::iterator;

  bool complete() const { return channels_.size() == static_cast<std::size_t>(clients_); }
  // Waits for a connection, a message or the end of a time limit, and handles each.
  void turn(const Deadline& deadline);
  void answer_door();
  // These two return false if the caller was dropped or accepted.
  bool hear(Place caller);
  bool take(Caller& caller, const Message& message);
  void welcome(Caller& caller);
  void drop(Place caller, const std::string& reason);
  void tell_all(const std::string& reason);

  const Fd& listener_;
  const Terms& own_;
  const std::string& secret_;
  int clients_;
  Picos patience_;
  Warnings warnings_;
  std::list<Caller> callers_;  // oldest first
  std::vector<Channel> channels_;
  std::string last_dropped_;  // reason of the last drop; empty: none
};

}  // namespace verbscope
