// How a server meets its clients: several handshakes are under way at a time, and whoever turns out to be no client (it
// says nothing, or what no client would say, does not know the secret, goes away) is dropped with a warning on standard
// error, while the others go on.
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

// A client has so long for its handshake; it sends by itself, so that it needs milliseconds.
inline constexpr std::chrono::seconds kHandshakePatience{5};
// Handshakes under way at once. One more, and that which began first is dropped.
inline constexpr std::size_t kMostHandshakes = 64;

class Reception {
 public:
  // All that is given must outlive it. A handshake has `patience`.
  Reception(const Fd& listener, const Terms& own, const std::string& secret, int clients,
            Picos patience = kHandshakePatience);

  // Waits for the clients until `deadline`; channel i is that of client i. Throws Error at the deadline, or for a
  // client with other terms; the clients that are there are told.
  std::vector<Channel> receive(const Deadline& deadline);

 private:
  // A connection whose handshake is under way.
  struct Caller {
    Caller(Fd its_socket, const std::string& secret, Picos patience);

    Fd socket;
    std::string name;
    ServerHandshake handshake;
    Deadline deadline;
    std::vector<std::byte> bytes;  // of the message that is coming, as long as known
    std::size_t filled = 0;
  };
  using Place = std::list<Caller>::iterator;

  bool complete() const { return channels_.size() == static_cast<std::size_t>(clients_); }
  // Waits until somebody connects or speaks, or has had the time for it, and hears each.
  void turn(const Deadline& deadline);
  void answer_door();
  // Each returns false when the caller is no longer one.
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
  std::list<Caller> callers_;  // the oldest first
  std::vector<Channel> channels_;
  std::string last_dropped_;  // why; empty: nobody was
};

}  // namespace verbscope
