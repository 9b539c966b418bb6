// How the processes of a service open and close sessions. A client's end asks for a session with an endpoint of another
// process; the endpoint opens its end and answers with its address. Messages go over the connections of a nexus, or in
// memory on a simulated cluster:
//
//   client                                            server
//      | -- open {endpoint, session, address} --------> |  again each 100 ms until an answer comes
//      | <- opened {session, remote, address} --------- |  or not_opened {session, reason}
//      | -- close {session} --------------------------> |  either side; a connection that is lost closes all its
//      sessions
//
// A session is named [thread, number, epoch] by the process that has its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "exchange/nexus.hpp"
#include "systems/rpc/packet.hpp"
#include "verbs/endpoint.hpp"

namespace verbscope {

// An end of a session in a process.
struct EndName {
  std::uint32_t thread = 0;
  SessionName session{};
  bool operator==(const EndName&) const = default;
};

// What the management asks of the endpoint of a thread: what a peer sent, a connection that is lost, or to stop.
struct SessionOrder {
  enum class Kind : std::uint8_t { open, opened, not_opened, close, lost, stop };
  Kind kind{};
  PeerId peer = 0;
  SessionName own{};     // the end here, with `opened`, `not_opened` and `close`
  EndName remote{};      // the end there, with `open` and `opened`
  Endpoint address{};    // of the peer, with `open` and `opened`
  std::string reason{};  // of `not_opened` and `lost`
};

// Orders for one thread. The thread pays an atomic load per look if there are none.
class Mailbox {
 public:
  bool empty() const { return !filled_.load(std::memory_order_relaxed); }
  void put(SessionOrder order);
  std::vector<SessionOrder> take();

 private:
  std::mutex mutex_;
  std::atomic<bool> filled_{false};
  std::vector<SessionOrder> orders_;
};

// Connections to other processes. Thread-safe.
class PeerLinks {
 public:
  virtual ~PeerLinks() = default;
  // Begins to connect. Throws Error for an invalid address.
  virtual PeerId connect(const std::string& address) = 0;
  virtual void send(PeerId peer, const Message& message) = 0;
};

// The management of one process.
class Management final : public NexusEvents {
 public:
  explicit Management(std::uint32_t threads) : mailboxes_(threads) {}

  // Before any other call. `links` must outlive this.
  void set_links(PeerLinks& links) { links_ = &links; }

  Mailbox& mailbox(std::uint32_t thread) { return mailboxes_[thread]; }
  // The threads are to end.
  void stop();
  // The connection to `address`, new or existing.
  PeerId peer_at(const std::string& address);

  void open(PeerId peer, std::uint32_t endpoint, const EndName& own, const Endpoint& address);
  void opened(PeerId peer, const EndName& theirs, const EndName& own, const Endpoint& address);
  void not_opened(PeerId peer, const EndName& theirs, const std::string& reason);
  void close(PeerId peer, const EndName& theirs);

  void received(PeerId peer, const Message& message) override;
  void lost(PeerId peer, const std::string& reason) override;

 private:
  PeerLinks* links_ = nullptr;
  std::deque<Mailbox> mailboxes_;  // by thread
  std::mutex mutex_;
  std::map<std::string, PeerId> peers_;  // connections that this process has made, by address
};

}  // namespace verbscope
