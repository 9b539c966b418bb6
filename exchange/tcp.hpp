// TCP with deadlines, for the exchange: every wait ends, says what it waited for, and never raises SIGPIPE.
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

// A moment that ends waiting, and how long that was from the start, for messages.
class Deadline {
 public:
  explicit Deadline(Picos timeout);
  // Milliseconds left for poll(), rounded up; 0 when it has passed.
  int poll_ms() const;
  // "2.5 s": the whole time allowed.
  std::string text() const;

 private:
  std::chrono::steady_clock::time_point end_;
  Picos timeout_;
};

// The step that is being done and the peer, for messages: "waited 2.5 s for `what` from `peer`".
struct Wait {
  std::string what;
  std::string peer;
  const Deadline& deadline;
};

// The peer has closed or reset the connection, or no longer answers (kPeerSilence).
class PeerGone : public Error {
 public:
  using Error::Error;
};

// A peer's machine that answers nothing for so long, neither data nor keep-alive probes, is given up.
inline constexpr std::chrono::seconds kPeerSilence{15};

// The process, or the system, has no descriptor left for a connection.
class NoDescriptor : public Error {
 public:
  using Error::Error;
};

// Listens on `port` (0: the system picks) of `address` ("": every address, IPv6 and IPv4). A name that means loopback
// by the hosts file of this machine (means_loopback_here) is listened for on every address, with a warning.
Fd tcp_listen(const std::string& address, int port);
int local_port(const Fd& socket);
// The next connection; nothing when the deadline passes first.
std::optional<Fd> tcp_accept(const Fd& listener, const Deadline& deadline);
// Connects, and tries again while nobody listens there. Throws at the deadline, or when the host has no address.
Fd tcp_connect(const std::string& host, int port, const Deadline& deadline);

// "10.0.0.1:18515", "[fe80::1]:18515".
std::string peer_name(const Fd& socket);

// Whether `name` is a name of this machine, and no more than its loopback `addresses` are known for it here: Debian
// gives a machine's own name 127.0.1.1, where no other machine, for which the name means another address, could come.
bool means_loopback_here(const std::string& name, const std::vector<std::string>& addresses);

// Takes what is there of `bytes`, and says how many; 0: nothing now. Throws PeerGone, or Error for the system's error.
std::size_t receive_some(const Fd& socket, std::span<std::byte> bytes, const Wait& wait);
// Both move all bytes, or throw PeerGone, or Error for the deadline or the system's error.
void send_all(const Fd& socket, std::span<const std::byte> bytes, const Wait& wait);
void receive_all(const Fd& socket, std::span<std::byte> bytes, const Wait& wait);

// Sends what fits without waiting; errors are dropped.
void send_now(const Fd& socket, std::span<const std::byte> bytes) noexcept;

// The peer has closed or reset its side; bytes that it sent before may still be there.
bool has_hung_up(const Fd& socket);

}  // namespace verbscope
