// The out-of-band exchange over TCP: the processes of one run find each other, agree on the parameters, and pass
// endpoints and results. ClientAcceptor accepts the clients. Channel carries the messages after the handshake.
//
// The secret keeps out strangers and other runs. It is never sent; both sides prove that they have it. Messages after
// the handshake are neither encrypted nor signed.
#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"
#include "common/json.hpp"
#include "common/terminal.hpp"
#include "common/units.hpp"
#include "exchange/handshake.hpp"
#include "exchange/tcp.hpp"

namespace verbscope {

// A connection to a peer after the handshake. Every wait has a timeout, whose error names the awaited message, the peer
// and the time. A side that gives up sends the reason.
class Channel {
 public:
  // At the server, a connection to client `index` of `clients`; at a client, the connection to the server.
  Channel(Fd socket, int index, int clients);

  // Sends {what, body}. Waits at most `timeout` for room in the socket. If the peer has gone, throws with the reason
  // that it sent, if any.
  void send(std::string_view what, const Json& body, Picos timeout);
  // Returns the body of the next message, which must be of type `what`. Throws on timeout, a closed connection, a
  // failure of the peer (with its reason), and a message of another type. After an exception the channel is unusable.
  Json receive(std::string_view what, Picos timeout);
  // Returns the next message of any type, and throws as receive() does.
  Message receive_next(Picos timeout);
  // Throws Error with the reason that a departed peer sent, or PeerGone. Does not wait.
  [[noreturn]] void throw_departure();
  // Sends the reason why this side gives up. Best effort: never throws, never waits.
  void send_failure(std::string_view reason) noexcept;
  // True if the peer has closed or reset the connection. Messages that it sent before, such as a failure with its
  // reason, can still be received. Does not wait.
  bool peer_gone() const;

  int fd() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }  // "10.0.0.1:18515"
  int index() const { return index_; }               // the client's number at the server, 0..clients-1
  int clients() const { return clients_; }           // number of clients that the server accepts

 private:
  Fd socket_;
  std::string peer_;
  int index_;
  int clients_;
};

// Returns the next message, which must be of type `type`. `peer` names the other side in errors.
Message receive_message(const Fd& socket, const std::string& peer, std::string_view type, std::size_t limit,
                        const Deadline& deadline);

// Time limit of a handshake. A client sends without user input and needs milliseconds.
inline constexpr std::chrono::seconds kHandshakeTimeout{5};
// Maximum number of handshakes at a time. A further connection replaces the oldest one.
inline constexpr std::size_t kMaxHandshakes = 64;

// Accepts the clients of a server. Several handshakes run at a time. A connection that turns out not to be a client
// (silent, invalid messages, wrong secret, closed) is dropped with a warning on standard error, while the others
// continue.
class ClientAcceptor {
 public:
  // All arguments must outlive this object. `timeout`: time limit of a handshake.
  ClientAcceptor(const Fd& listener, const Terms& own, const std::string& secret, int clients,
                 Picos timeout = kHandshakeTimeout);

  // Waits for the clients until `deadline`; channel i is that of client i. Throws Error at the deadline, or for a
  // client with other terms; the accepted clients receive the reason.
  std::vector<Channel> receive(const Deadline& deadline);
  // For servers whose clients come and go: waits for one client until `deadline`, with `clients` 1. Call again for the
  // next one. A client with other terms is dropped with a warning. Empty: the deadline has passed.
  std::optional<Channel> next(const Deadline& deadline);

 private:
  // A connection during its handshake.
  struct PendingConnection {
    PendingConnection(Fd its_socket, const std::string& secret, Picos timeout);

    Fd socket;
    std::string name;
    ServerHandshake handshake;
    Deadline deadline;
    std::vector<std::byte> bytes;  // of the incoming message, as far as its length is known
    std::size_t filled = 0;
  };
  using PendingIterator = std::list<PendingConnection>::iterator;

  bool complete() const { return channels_.size() == static_cast<std::size_t>(clients_); }
  // Waits for a connection, a message or the end of a time limit, and handles each.
  void wait_and_handle(const Deadline& deadline);
  void accept_connection();
  // These two return false if the connection was dropped or became a channel.
  bool read_messages(PendingIterator connection);
  bool answer(PendingConnection& connection, const Message& message);
  void welcome(PendingConnection& connection);
  void drop(PendingIterator connection, const std::string& reason);
  void send_failure_to_all(const std::string& reason);

  const Fd& listener_;
  const Terms& own_;
  const std::string& secret_;
  int clients_;
  Picos timeout_;
  Warnings warnings_;
  std::list<PendingConnection> pending_;  // oldest first
  std::vector<Channel> channels_;
  std::string last_drop_;  // reason of the last drop; empty: none
};

class ExchangeServer {
 public:
  // Listens on `port` of `address`. 0: the system chooses, see port(); "": every address (tcp_listen).
  ExchangeServer(int port, Terms terms, std::string secret, const std::string& address = "");
  int port() const { return port_; }
  // Prints "listening on port N", which `verbscope run` reads; before it a warning if the secret is empty.
  void announce() const;

  // Waits for `clients` peers and completes the handshake with each, all within `timeout`. Returns them by client
  // number. Drops any other connection with a warning. A client with other terms is an Error; the accepted
  // clients receive the reason.
  std::vector<Channel> accept(int clients, Picos timeout);

 private:
  Terms terms_;
  std::string secret_;
  Fd socket_;
  int port_ = 0;
};

// Connects to the server, retrying until it listens, and completes the handshake, all within `timeout`.
Channel connect_exchange(const std::string& host, int port, const Terms& terms, const std::string& secret,
                         Picos timeout);

// The secret of the run: `option` if not empty, else VERBSCOPE_SECRET from the environment, else "".
std::string exchange_secret(const std::string& option);

}  // namespace verbscope
