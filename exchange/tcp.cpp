#include "exchange/tcp.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {

namespace {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

constexpr int kBacklog = 128;
constexpr int kRetryMs = 20;  // between attempts to connect

AddressList resolve(const std::string& host, int port, int flags) {
  if (port < 0 || port > 65535) fail("port {} (allowed 0-65535)", port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) fail("host \"{}\": {}", host, gai_strerror(error));
  return {list, freeaddrinfo};
}

struct NumericAddress {
  std::string host, port;
};

// IPv4-mapped IPv6 addresses are shown as IPv4.
NumericAddress numeric_address(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  const int error = getnameinfo(address, size, host.data(), host.size(), service.data(), service.size(),
                                NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) fail("cannot convert an address to text: {}", gai_strerror(error));
  std::string_view name = host.data();
  constexpr std::string_view kMapped = "::ffff:";
  if (name.starts_with(kMapped) && name.find('.') != std::string_view::npos) name.remove_prefix(kMapped.size());
  return {std::string(name), service.data()};
}

std::vector<std::string> numeric_addresses(const AddressList& list) {
  std::vector<std::string> out;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    out.push_back(numeric_address(entry->ai_addr, entry->ai_addrlen).host);
  }
  return out;
}

void set_option(const Fd& socket, int level, int name, int value) {
  check("set a socket option", setsockopt(socket.get(), level, name, &value, sizeof value));
}

// Sends small messages at once. Detects a vanished peer after kPeerSilence: by three keep-alive probes if no data is
// outstanding, else by TCP_USER_TIMEOUT, because there are no probes while data is unacknowledged (tcp(7)).
void configure(const Fd& socket) {
  constexpr int kSilenceMs = static_cast<int>(std::chrono::milliseconds(kPeerSilence).count());
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kSilenceMs / 3000);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kSilenceMs / 3000);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
}

// Returns false if the deadline passes first. A socket error counts as ready: the next call reports it.
bool wait_ready(int fd, short events, const Deadline& deadline) {
  pollfd entry{fd, events, 0};
  while (true) {
    const int ready = poll(&entry, 1, deadline.poll_ms());
    if (ready > 0) return true;
    if (ready == 0 && deadline.poll_ms() == 0) return false;
    if (ready < 0 && errno != EINTR) throw_errno("poll a socket", errno);
  }
}

// Returns a socket that listens on `address`; empty on failure, with errno.
std::optional<Fd> listen_on(const addrinfo& address) {
  Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return std::nullopt;
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) return std::nullopt;
  return fd;
}

// TCP can connect to itself: if nobody listens on a local port, the system may choose that port as the local one.
bool is_connected_to_itself(const Fd& socket) {
  sockaddr_storage local{};
  sockaddr_storage peer{};
  socklen_t local_size = sizeof local;
  socklen_t peer_size = sizeof peer;
  return getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &local_size) == 0 &&
         getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && local_size == peer_size &&
         std::memcmp(&local, &peer, local_size) == 0;
}

// Makes one attempt. Returns the connection; on failure sets `error` to the errno.
std::optional<Fd> connect_once(const addrinfo& address, const Deadline& deadline, int& error) {
  Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  error = fd.get() < 0 ? errno : 0;
  if (error == 0 && connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!wait_ready(fd.get(), POLLOUT, deadline)) {
      error = ETIMEDOUT;
    } else if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      error = errno;
    }
  }
  if (error == 0 && is_connected_to_itself(fd)) error = ECONNREFUSED;
  if (error != 0) return std::nullopt;
  return fd;
}

// Describes why the peer has gone, given the `error` of its connection (0: closed normally). Empty if the error is not
// due to the peer.
std::string_view departure_text(int error) {
  if (error == 0 || error == ECONNRESET || error == EPIPE) return "closed the connection";
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ? "stopped responding" : "";
}

}  // namespace

Deadline::Deadline(Picos timeout)
    : end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout)),
      timeout_(timeout) {}

int Deadline::poll_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

std::string Deadline::text() const {
  return fmt::format("{:.6g} s", to_seconds(timeout_));
}

bool is_loopback_alias(const std::string& name, const std::vector<std::string>& addresses) {
  const auto loopback = [](const std::string& address) { return address == "::1" || address.starts_with("127."); };
  return name != "localhost" && std::ranges::find(addresses, name) == addresses.end() &&
         std::ranges::all_of(addresses, loopback);
}

Fd tcp_listen(const std::string& address, int port) {
  const AddressList list = resolve(address, port, AI_PASSIVE);
  if (!address.empty() && is_loopback_alias(address, numeric_addresses(list))) {
    warn(fmt::format("{} resolves to {} on this machine, which other machines cannot reach: listening on all addresses",
                     address, numeric_addresses(list).front()));
    return tcp_listen("", port);
  }
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {  // IPv6 first, because it also accepts IPv4
    for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family != family) continue;
      if (auto fd = listen_on(*entry)) return std::move(*fd);
      error = errno;
    }
  }
  throw_errno(fmt::format("listen on port {}{}", port, address.empty() ? "" : " of " + address), error);
}

int local_port(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  check("read the port of a socket", getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size));
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::optional<Fd> tcp_accept(const Fd& listener, const Deadline& deadline) {
  while (wait_ready(listener.get(), POLLIN, deadline)) {
    Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.get() >= 0) {
      configure(fd);
      return fd;
    }
    // The peer may have closed the connection between poll and accept.
    if (errno == EMFILE || errno == ENFILE) throw NoDescriptor("accept a connection: " + errno_text(errno));
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) throw_errno("accept a connection", errno);
  }
  return std::nullopt;
}

Fd tcp_connect(const std::string& host, int port, const Deadline& deadline) {
  const AddressList list = resolve(host, port, 0);
  while (true) {
    int error = 0;
    for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
      if (auto fd = connect_once(*entry, deadline, error)) {
        configure(*fd);
        return std::move(*fd);
      }
    }
    const int left = deadline.poll_ms();
    if (left == 0) fail("waited {} for a server on {} port {}: {}", deadline.text(), host, port, errno_text(error));
    poll(nullptr, 0, std::min(left, kRetryMs));
  }
}

std::string peer_name(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket.get(), generic, &size) != 0) return "a disconnected peer";
  const NumericAddress peer = numeric_address(generic, size);
  const bool is_ipv6 = peer.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", peer.host, peer.port) : fmt::format("{}:{}", peer.host, peer.port);
}

void send_all(const Fd& socket, std::span<const std::byte> bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (const std::string_view how = departure_text(errno); !how.empty()) {
      throw PeerGone(fmt::format("{} {} while {} was sent to it", wait.peer, how, wait.what));
    } else if (errno == EAGAIN) {
      if (!wait_ready(socket.get(), POLLOUT, wait.deadline)) {
        fail("waited {} for {} to accept {}", wait.deadline.text(), wait.peer, wait.what);
      }
    } else if (errno != EINTR) {
      throw_errno(fmt::format("send {} to {}", wait.what, wait.peer), errno);
    }
  }
}

std::size_t receive_some(const Fd& socket, std::span<std::byte> bytes, const Wait& wait) {
  while (true) {
    const ssize_t received = recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (received > 0) return static_cast<std::size_t>(received);
    if (const std::string_view how = departure_text(received == 0 ? 0 : errno); !how.empty()) {
      throw PeerGone(fmt::format("{} {} before {} had arrived", wait.peer, how, wait.what));
    }
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) throw_errno(fmt::format("receive {} from {}", wait.what, wait.peer), errno);
  }
}

void receive_all(const Fd& socket, std::span<std::byte> bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const std::size_t received = receive_some(socket, bytes, wait);
    bytes = bytes.subspan(received);
    if (received == 0 && !wait_ready(socket.get(), POLLIN, wait.deadline)) {
      fail("waited {} for {} from {}", wait.deadline.text(), wait.what, wait.peer);
    }
  }
}

void send_now(const Fd& socket, std::span<const std::byte> bytes) noexcept {
  [[maybe_unused]] const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool has_hung_up(const Fd& socket) {
  pollfd entry{socket.get(), POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace verbscope
