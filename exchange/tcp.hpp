// TCP with deadlines for the exchange. Every wait ends, its error names the awaited message, and no call raises
// SIGPIPE.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/fd.hpp"
#include "common/units.hpp"

namespace verbscope {

// The end of a wait, and its total length for messages.
class Deadline {
 public:
  explicit Deadline(Picos timeout);
  // Remaining milliseconds for poll(), rounded up; 0 if it has passed.
  int poll_ms() const;
  // "2.5 s": the total time.
  std::string text() const;

 private:
  std::chrono::steady_clock::time_point end_;
  Picos timeout_;
};

// The current step and the peer, for errors: "waited 2.5 s for `what` from `peer`".
struct Wait {
  std::string what;
  std::string peer;
  const Deadline& deadline;
};

// The peer has closed or reset the connection, or does not respond (kPeerSilence).
class PeerGone : public Error {
 public:
  using Error::Error;
};

// A peer is given up if its machine sends neither data nor replies to keep-alive probes for this long.
inline constexpr std::chrono::seconds kPeerSilence{15};

// The process or the system has no file descriptor left for a connection.
class NoDescriptor : public Error {
 public:
  using Error::Error;
};

// Listens on `port` (0: the system chooses) of `address` ("": every address, IPv6 and IPv4). If `address` is a name
// that the hosts file of this machine maps to loopback (is_loopback_alias), listens on every address, with a warning.
Fd tcp_listen(const std::string& address, int port);
int local_port(const Fd& socket);
// Returns the next connection; empty if the deadline passes first.
std::optional<Fd> tcp_accept(const Fd& listener, const Deadline& deadline);
// Connects, retrying until someone listens. Throws at the deadline, or if the host has no address.
Fd tcp_connect(const std::string& host, int port, const Deadline& deadline);

// "10.0.0.1:18515", "[fe80::1]:18515".
std::string peer_name(const Fd& socket);

// True if `name` is a name of this machine and `addresses`, its addresses as resolved here, are all loopback. Debian
// maps a machine's own name to 127.0.1.1, but other machines resolve the name to another address and could not connect.
bool is_loopback_alias(const std::string& name, const std::vector<std::string>& addresses);

// Reads the available bytes and returns their number; 0: none now. Throws PeerGone, or Error for a system error.
std::size_t receive_some(const Fd& socket, std::span<std::byte> bytes, const Wait& wait);
// Both transfer all bytes, or throw PeerGone, or Error at the deadline or for a system error.
void send_all(const Fd& socket, std::span<const std::byte> bytes, const Wait& wait);
void receive_all(const Fd& socket, std::span<std::byte> bytes, const Wait& wait);

// Sends as much as fits without waiting. Ignores errors.
void send_now(const Fd& socket, std::span<const std::byte> bytes) noexcept;

// True if the peer has closed or reset its side. Bytes that it sent before may still be unread.
bool has_hung_up(const Fd& socket);

}  // namespace verbscope
