// A connection to a peer whose handshake is over. Messages are bounded (message.hpp), every wait has a timeout that
// says what it waited for, from whom and how long; a side that gives up tells why.
#pragma once

#include <string>
#include <string_view>

#include "common/fd.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "exchange/message.hpp"
#include "exchange/tcp.hpp"

namespace verbscope {

class Channel {
 public:
  // Takes the client `index` of `clients`, or, at a client, the server.
  Channel(Fd socket, int index, int clients);

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
  Fd socket_;
  std::string peer_;
  int index_;
  int clients_;
};

// What Channel is made of, for the handshake that comes before it. `peer` names the other side in errors.
void send_message(const Fd& socket, const std::string& peer, const Message& message, std::size_t limit,
                  const Deadline& deadline);
// The next message, which must be of type `what`.
Message receive_message(const Fd& socket, const std::string& peer, std::string_view what, std::size_t limit,
                        const Deadline& deadline);
// Sends a message that ends the connection, "failure" or "refused", with its reason. Best effort, as send_failure.
void tell_end(const Fd& socket, const char* type, std::string_view reason) noexcept;

// "message \"hello\""
std::string message_name(std::string_view type);

}  // namespace verbscope
