// A connection to a peer after the handshake. Messages are bounded (message.hpp). Every wait has a timeout, whose error
// names the awaited message, the peer and the time. A side that gives up sends the reason.
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
  // At the server, a connection to client `index` of `clients`; at a client, the connection to the server.
  Channel(Fd socket, int index, int clients);

  // Sends {what, body}. Waits at most `timeout` for room in the socket. If the peer has gone, throws with the reason
  // that it sent, if any.
  void send(std::string_view what, const Json& body, Picos timeout);
  // Returns the body of the next message, which must be of type `what`. Throws on timeout, a closed connection, a
  // failure of the peer (with its reason), and a message of another type. After an exception the channel is unusable.
  Json receive(std::string_view what, Picos timeout);
  // Throws Error with the reason that a departed peer sent, or PeerGone. Does not wait.
  [[noreturn]] void hear_out();
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

// Building blocks of Channel, also used by the handshake. `peer` names the other side in errors.
void send_message(const Fd& socket, const std::string& peer, const Message& message, std::size_t limit,
                  const Deadline& deadline);
// Returns the next message, which must be of type `what`.
Message receive_message(const Fd& socket, const std::string& peer, std::string_view what, std::size_t limit,
                        const Deadline& deadline);
// Sends "failure" or "refused" with a reason, which ends the connection. Best effort, like send_failure.
void tell_end(const Fd& socket, const char* type, std::string_view reason) noexcept;

// "message \"hello\""
std::string message_name(std::string_view type);

}  // namespace verbscope
