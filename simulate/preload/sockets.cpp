#include "simulate/preload/sockets.hpp"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "simulate/preload/addresses.hpp"
#include "simulate/preload/looks.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"

// glibc's checked variants, which fortified programs call.
EXPORTED ssize_t __recv_chk(int, void*, std::size_t, std::size_t, int);
EXPORTED ssize_t __recvfrom_chk(int, void*, std::size_t, std::size_t, int, sockaddr*, socklen_t*);

namespace verbscope::simulate {
namespace {

int option_of(int socket, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  getsockopt(socket, SOL_SOCKET, option, &value, &size);
  return value;
}

// An IPv4 address and port, also of an IPv6 socket; 0: it is none.
std::uint64_t number_of(const sockaddr* name) {
  const auto& ipv4 = *reinterpret_cast<const sockaddr_in*>(name);
  const auto& ipv6 = *reinterpret_cast<const sockaddr_in6*>(name);
  if (name->sa_family != AF_INET && name->sa_family != AF_INET6) return 0;
  const std::uint64_t address = name->sa_family == AF_INET ? ipv4.sin_addr.s_addr : ipv6.sin6_addr.s6_addr32[3];
  return address << 16 | ipv4.sin_port;  // which is at the same place
}

// `get`: getsockname or getpeername.
std::uint64_t name_of(int socket, auto* get) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  return get(socket, reinterpret_cast<sockaddr*>(&name), &bytes) == 0 ? number_of(reinterpret_cast<sockaddr*>(&name))
                                                                      : 0;
}

// Of a connection from one name to the other.
std::uint64_t key_of(std::uint64_t from, std::uint64_t to) {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  return from * kGoldenRatio ^ to;
}

// The buffers of a message from byte `done` on.
class Rest {
 public:
  explicit Rest(const msghdr& message) : message_(message) {
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) left_ += message.msg_iov[i].iov_len;
  }
  msghdr& message() { return message_; }
  std::size_t left() const { return left_; }
  void advance(std::size_t bytes) {
    left_ -= bytes;
    parts_.assign(message_.msg_iov, message_.msg_iov + message_.msg_iovlen);
    auto first = parts_.begin();
    for (; first != parts_.end() && bytes >= first->iov_len; ++first) bytes -= first->iov_len;
    parts_.erase(parts_.begin(), first);
    if (!parts_.empty()) {
      parts_.front().iov_base = static_cast<std::byte*>(parts_.front().iov_base) + bytes;
      parts_.front().iov_len -= bytes;
    }
    message_.msg_iov = parts_.data();
    message_.msg_iovlen = parts_.size();
    message_.msg_control = nullptr;  // went with the first part
    message_.msg_controllen = 0;
  }

 private:
  msghdr message_;
  std::size_t left_ = 0;
  std::vector<iovec> parts_;
};

bool would_block(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

// After a call that would block. False and errno: time-out or a signal.
bool wait(Look& look, std::int64_t deadline, bool for_room) {
  const Waited waited = look.wait(deadline, true, for_room);
  if (waited == Waited::look_again) return true;
  errno = waited == Waited::interrupted ? EINTR : EAGAIN;
  return false;
}

ssize_t send_message(int socket, const msghdr& message, int flags) {
  const KernelAddress to = to_kernel(static_cast<const sockaddr*>(message.msg_name), message.msg_namelen);
  Rest rest(message);
  if (to.of_node) {
    bind_to_node(socket);
    rest.message().msg_name = const_cast<sockaddr*>(to.get());
  }
  const bool waits = (flags & MSG_DONTWAIT) == 0 && blocks(socket);
  ssize_t done = 0;
  for (;;) {
    if (to.of_node)
      announce(kNetworkPs, number_of(to.get()));
    else
      announce_by(socket);
    const ssize_t sent = REAL(sendmsg)(socket, &rest.message(), flags | MSG_DONTWAIT);
    if (sent >= 0) {
      done += sent;
      if (static_cast<std::size_t>(sent) >= rest.left() || !waits) return done;
      rest.advance(static_cast<std::size_t>(sent));  // part of a stream
      continue;
    }
    if (!waits || !would_block(sent)) return done > 0 ? done : sent;
    Look look;
    if (!wait(look, socket_deadline(socket, SO_SNDTIMEO), true)) return done > 0 ? done : -1;
  }
}

ssize_t receive(int socket, msghdr& message, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return REAL(recvmsg)(socket, &message, flags);
  const bool waits = (flags & MSG_DONTWAIT) == 0 && blocks(socket);
  const bool all =
      waits && (flags & MSG_WAITALL) != 0 && (flags & MSG_PEEK) == 0 && option_of(socket, SO_TYPE) == SOCK_STREAM;
  const std::int64_t deadline = waits ? socket_deadline(socket, SO_RCVTIMEO) : 0;
  Rest rest(message);
  Look look;
  ssize_t done = 0;
  for (;;) {
    msghdr& part = done > 0 ? rest.message() : message;
    if (look.must_settle() && is_ready(socket, POLLIN)) settle_input(look, socket);
    const ssize_t result = REAL(recvmsg)(socket, &part, flags | MSG_DONTWAIT);
    if (!waits || !would_block(result)) {
      if (result > 0) look.has_read();
      done = result < 0 && done == 0 ? result : done + std::max<ssize_t>(result, 0);
      if (!all || result <= 0 || static_cast<std::size_t>(result) >= rest.left()) break;
      rest.advance(static_cast<std::size_t>(result));
      continue;
    }
    if (wait(look, deadline, false)) continue;
    if (done == 0) done = -1;
    break;
  }
  if (done >= 0) to_program(static_cast<sockaddr*>(message.msg_name), message.msg_namelen);
  return done;
}

ssize_t receive_from(int socket, void* to, std::size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
  iovec part{to, bytes};
  const socklen_t room = from == nullptr || from_bytes == nullptr ? 0 : *from_bytes;
  msghdr message{};
  message.msg_name = room == 0 ? nullptr : from;
  message.msg_namelen = room;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t result = receive(socket, message, flags);
  if (result >= 0 && room > 0) *from_bytes = message.msg_namelen;
  return result;
}

// Calls `get` of the kernel, which tells an address, in terms of the program.
template <class Get>
int address_from(sockaddr* address, socklen_t* bytes, Get&& get) {
  const socklen_t room = address == nullptr || bytes == nullptr ? 0 : *bytes;
  const int result = get();
  if (result >= 0 && room > 0) to_program(address, std::min(room, *bytes));
  return result;
}

}  // namespace

std::int64_t socket_deadline(int socket, int option) {
  timeval limit{};
  socklen_t size = sizeof limit;
  if (getsockopt(socket, SOL_SOCKET, option, &limit, &size) != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0))
    return kNever;
  return deadline_of(&limit);
}

std::uint64_t key_to_peer(int socket) {
  const std::uint64_t peer = name_of(socket, REAL(getpeername));
  if (peer == 0 || option_of(socket, SO_TYPE) != SOCK_STREAM) return peer;
  return key_of(name_of(socket, REAL(getsockname)), peer);
}

std::uint64_t key_of_input(int socket) {
  const std::uint64_t own = name_of(socket, REAL(getsockname));
  const std::uint64_t peer =
      own == 0 || option_of(socket, SO_TYPE) != SOCK_STREAM ? 0 : name_of(socket, REAL(getpeername));
  return peer == 0 ? own : key_of(peer, own);
}

void settle_input(const Look& look, int fd) {
  const std::uint64_t key = is_socket(fd) ? key_of_input(fd) : 0;
  if (key != 0) look.settle(key);
}

ssize_t send_parts(int socket, const iovec* parts, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<std::size_t>(count);
  return send_message(socket, message, 0);
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

// librdmacm asks the kernel by netlink for the number of its device, which the simulated one does not have. Without an
// answer it takes the device by its name.
EXPORTED int socket(int domain, int type, int protocol) noexcept {
  if (simulated() && domain == AF_NETLINK && protocol == NETLINK_RDMA) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  const int fd = REAL(socket)(domain, type, protocol);
  const bool ip = domain == AF_INET || domain == AF_INET6;
  if (fd < 0 || !simulated() || !ip || (type & 0xff) != SOCK_STREAM) return fd;
  // TCP must not keep data back in real time, in which acknowledgements may take 40 ms.
  const int at_once = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  return fd;
}

EXPORTED int bind(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  if (!simulated()) return REAL(bind)(fd, address, bytes);
  const KernelAddress own = to_bind(fd, address, bytes);
  return own.of_node ? REAL(bind)(fd, own.get(), own.bytes) : REAL(bind)(fd, address, bytes);
}

EXPORTED int listen(int fd, int backlog) noexcept {
  if (simulated()) bind_to_node(fd);
  return REAL(listen)(fd, backlog);
}

EXPORTED int connect(int fd, const sockaddr* address, socklen_t bytes) {
  if (!simulated()) return REAL(connect)(fd, address, bytes);
  const KernelAddress to = to_kernel(address, bytes);
  if (!to.of_node) {
    announce_by(fd);
    return REAL(connect)(fd, address, bytes);
  }
  announce(kNetworkPs, number_of(to.get()));
  bind_to_node(fd);
  const int result = REAL(connect)(fd, to.get(), to.bytes);
  // TCP's handshake is a round trip.
  if (result == 0 && option_of(fd, SO_TYPE) == SOCK_STREAM) ask(Operation::sleep_until, now_ps(0) + 2 * kNetworkPs);
  return result;
}

EXPORTED int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  if (!simulated()) return REAL(accept4)(fd, address, bytes, flags);
  Look look;
  if (!await_ready(look, fd, POLLIN, socket_deadline(fd, SO_RCVTIMEO))) return -1;
  return address_from(address, bytes, [=] { return REAL(accept4)(fd, address, bytes, flags); });
}

EXPORTED int accept(int fd, sockaddr* address, socklen_t* bytes) {
  return accept4(fd, address, bytes, 0);
}

EXPORTED int getsockname(int fd, sockaddr* address, socklen_t* bytes) noexcept {
  if (!simulated()) return REAL(getsockname)(fd, address, bytes);
  return address_from(address, bytes, [=] { return REAL(getsockname)(fd, address, bytes); });
}

EXPORTED int getpeername(int fd, sockaddr* address, socklen_t* bytes) noexcept {
  if (!simulated()) return REAL(getpeername)(fd, address, bytes);
  return address_from(address, bytes, [=] { return REAL(getpeername)(fd, address, bytes); });
}

EXPORTED int shutdown(int fd, int how) noexcept {
  announce_by(fd);
  return REAL(shutdown)(fd, how);
}

EXPORTED ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return is_socket(fd) ? send_message(fd, *message, flags) : REAL(sendmsg)(fd, message, flags);
}

EXPORTED ssize_t sendto(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* to,
                        socklen_t to_bytes) {
  if (!is_socket(fd)) return REAL(sendto)(fd, from, bytes, flags, to, to_bytes);
  iovec part{const_cast<void*>(from), bytes};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(to);
  message.msg_namelen = to == nullptr ? 0 : to_bytes;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return send_message(fd, message, flags);
}

EXPORTED ssize_t send(int fd, const void* from, std::size_t bytes, int flags) {
  return sendto(fd, from, bytes, flags, nullptr, 0);
}

EXPORTED int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (!is_socket(fd)) return REAL(sendmmsg)(fd, messages, count, flags);
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t sent = send_message(fd, messages[i].msg_hdr, flags);
    if (sent < 0) return i > 0 ? static_cast<int>(i) : -1;
    messages[i].msg_len = static_cast<unsigned>(sent);
  }
  return static_cast<int>(count);
}

EXPORTED ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return is_socket(fd) ? receive(fd, *message, flags) : REAL(recvmsg)(fd, message, flags);
}

EXPORTED ssize_t recvfrom(int fd, void* to, std::size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
  if (!is_socket(fd)) return REAL(recvfrom)(fd, to, bytes, flags, from, from_bytes);
  return receive_from(fd, to, bytes, flags, from, from_bytes);
}

EXPORTED ssize_t recv(int fd, void* to, std::size_t bytes, int flags) {
  return recvfrom(fd, to, bytes, flags, nullptr, nullptr);
}

EXPORTED ssize_t __recvfrom_chk(int fd, void* to, std::size_t bytes, std::size_t room, int flags, sockaddr* from,
                                socklen_t* from_bytes) {
  if (bytes > room) return REAL(__recvfrom_chk)(fd, to, bytes, room, flags, from, from_bytes);
  return recvfrom(fd, to, bytes, flags, from, from_bytes);
}

EXPORTED ssize_t __recv_chk(int fd, void* to, std::size_t bytes, std::size_t room, int flags) {
  if (bytes > room) return REAL(__recv_chk)(fd, to, bytes, room, flags);
  return recv(fd, to, bytes, flags);
}

EXPORTED int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  if (!is_socket(fd)) return REAL(recvmmsg)(fd, messages, count, flags, limit);
  // As the kernel: the time-out counts only when a message has come.
  const std::int64_t deadline = deadline_of(limit);
  const bool for_one = (flags & MSG_WAITFORONE) != 0;
  flags &= ~MSG_WAITFORONE;
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t result = receive(fd, messages[i].msg_hdr, i > 0 && for_one ? flags | MSG_DONTWAIT : flags);
    if (result < 0) return i > 0 ? static_cast<int>(i) : -1;
    messages[i].msg_len = static_cast<unsigned>(result);
    if (now_ps(0) >= deadline) return static_cast<int>(i + 1);
  }
  return static_cast<int>(count);
}
