// Connections among the processes of a service, by TCP. The nexus of a process listens for others and connects to
// them; both prove the secret, as in the handshake of a run. Messages are delivered by a thread of the nexus, and a
// connection that ends is reported.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/fd.hpp"
#include "common/units.hpp"
#include "exchange/exchange.hpp"

namespace verbscope {

// Names a connection. Numbers are not used again.
using PeerId = std::uint64_t;

// What the nexus reports, one call at a time, from its thread.
class NexusEvents {
 public:
  virtual ~NexusEvents() = default;
  // An Error that it throws ends the connection.
  virtual void received(PeerId peer, const Message& message) = 0;
  // The connection has ended or could not be made. The last call for `peer`.
  virtual void lost(PeerId peer, const std::string& reason) = 0;
};

class Nexus {
 public:
  // Listens on `port` of every address (0: the system chooses, see port()); without, only connects. Both sides of a
  // connection must agree on `terms` and `secret`. `events` must outlive the nexus. Throws Error.
  Nexus(NexusEvents& events, Terms terms, std::string secret, std::optional<int> port);
  // Waits for attempts to connect, at most for their timeouts.
  ~Nexus();
  Nexus(const Nexus&) = delete;
  Nexus& operator=(const Nexus&) = delete;

  int port() const { return port_; }

  // Begins to connect, retrying for `timeout` until someone listens. Does not wait.
  PeerId connect(const std::string& host, int port, Picos timeout);
  // Sends a message, at the latest when the connection is made. Drops it if the connection has ended.
  void send(PeerId peer, const Message& message);

 private:
  struct Connection {
    std::optional<Channel> channel;  // none: it is being made
    std::vector<Message> unsent;
    std::string failure;  // not empty: the connection has ended
  };

  std::vector<std::jthread> take_ended();
  void accept(const std::stop_token& stop);
  void add(PeerId peer, Channel channel);
  void fail_connection(PeerId peer, const std::string& reason);
  void receive(const std::stop_token& stop);
  void receive_from(PeerId peer);
  void report_lost();

  NexusEvents& events_;
  Terms terms_;
  std::string secret_;
  std::optional<Fd> listener_;
  int port_ = 0;
  EventFd wake_;  // the receiving thread
  std::mutex mutex_;
  std::map<PeerId, Connection> connections_;
  PeerId next_ = 1;
  std::map<PeerId, std::jthread> connectors_;
  std::jthread acceptor_, receiver_;
};

}  // namespace verbscope
