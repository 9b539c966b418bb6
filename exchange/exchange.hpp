// The out-of-band exchange over TCP: how the processes of one run find each other, agree on what they run, and pass
// endpoints and results.
//
//   client i                                        server (one, `clients` peers)
//      |  connect, retried until the timeout           |  listens on --port
//      | -- hello {protocol, benchmark, version,       |
//      |           parameters, secret} --------------> |  checks protocol, then the secret
//      | <------------- refused {reason} ------------- |  one of them is wrong: both sides fail with it
//      | <-- welcome {hello without secret,            |
//      |              client i, clients n} ----------- |
//      |  both compare benchmark, version, parameters: a difference ends both with both values of each
//      | <----------- messages either way -----------> |  typed: the receiver says which type it waits for
//      | <-- failure {reason} -- or -- failure ------> |  a side that gives up tells why
//
// Messages are bounded (message.hpp), every wait has a timeout that says what it waited for, from whom and how long.
// The secret keeps strangers and runs apart; it crosses the network in the clear.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "exchange/message.hpp"
#include "exchange/tcp.hpp"

namespace verbscope {

// A connection to a peer whose handshake is over.
class Channel {
 public:
  // Sends {what, body}; waits at most `timeout` for room in the socket. Throws with the reason of a peer that has gone
  // and gave one.
  void send(std::string_view what, const Json& body, Picos timeout);
  // The body of the next message, which must be of type `what`. A channel that threw is over. Throws on timeout, a peer
  // that closed, a peer's failure (with its reason), or a message of another type.
  Json receive(std::string_view what, Picos timeout);
  // Throws for a peer that has gone: Error with the reason that it gave, or PeerGone. Does not wait.
  [[noreturn]] void hear_out();
  // Tells the peer why this side gives up. Best effort: never throws, never waits.
  void send_failure(std::string_view reason) noexcept;
  // True when the peer has closed or reset the connection; what it sent before, such as a failure with its reason, can
  // still be received. Does not wait.
  bool peer_gone() const;

  int fd() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }  // "10.0.0.1:18515"
  int index() const { return index_; }               // the client's number at the server, 0..clients-1
  int clients() const { return clients_; }           // how many the server accepts in all

 private:
  friend class ExchangeServer;
  friend Channel connect_exchange(const std::string& host, int port, const Hello& hello, Picos timeout);
  explicit Channel(Fd socket);
  // The next message of any type but a failure; `what` was expected.
  Message receive_any(std::string_view what, std::size_t limit, const Deadline& deadline);
  Message receive_message(std::string_view what, std::size_t limit, const Deadline& deadline);
  void send_message(const Message& message, std::size_t limit, const Deadline& deadline);
  void tell(const char* type, std::string_view reason) noexcept;

  Fd socket_;
  std::string peer_;
  int index_ = 0;
  int clients_ = 1;
};

class ExchangeServer {
 public:
  // Listens on `port` (0: the system picks, port() reports) of `address` ("" is every address).
  explicit ExchangeServer(int port, Hello hello, const std::string& address = "");
  int port() const { return port_; }

  // Waits for `clients` peers and shakes hands with each, all within `timeout`. A stranger, a wrong secret or a
  // mismatch ends it with an Error; peers already accepted are told.
  std::vector<Channel> accept(int clients, Picos timeout);

 private:
  Channel accept_one(int index, int clients, const Deadline& deadline);

  Hello hello_;
  Fd socket_;
  int port_ = 0;
};

// Connects to the server, retrying while nobody listens, and shakes hands, all within `timeout`.
Channel connect_exchange(const std::string& host, int port, const Hello& hello, Picos timeout);

// The secret of the run: `option` when not empty, else the environment's VERBSCOPE_SECRET, else "".
std::string exchange_secret(const std::string& option);

}  // namespace verbscope
