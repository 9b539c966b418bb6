// Reading, writing and waiting for file descriptors, in virtual time. What the C library reads and writes itself, such
// as the buffers of its streams, does not pass here: streams.cpp has what can be done about it.
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/connection_manager.hpp"
#include "simulate/preload/looks.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/sockets.hpp"

// glibc's checked variants, which fortified programs call.
EXPORTED ssize_t __read_chk(int, void*, std::size_t, std::size_t);
EXPORTED int __poll_chk(pollfd*, nfds_t, int, std::size_t);
EXPORTED int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t);

namespace verbscope::simulate {
namespace {

template <class Read>
ssize_t read_from(int fd, Read&& read) {
  if (!waits_for_others(fd)) return read();
  Look look;
  const std::int64_t deadline = is_socket(fd) ? socket_deadline(fd, SO_RCVTIMEO) : kNever;
  if (!await_ready(look, fd, POLLIN, deadline)) return -1;
  const ssize_t result = read();
  if (result > 0) look.has_read();
  return result;
}

// To a pipe or the like. A pipe that is ready has room for PIPE_BUF bytes, so that parts of this size do not wait.
ssize_t write_parts(int fd, const std::byte* from, std::size_t bytes) {
  if (!blocks(fd)) {
    announce_by(fd);
    return REAL(write)(fd, from, bytes);
  }
  std::size_t done = 0;
  do {
    Look look;
    if (!await_ready(look, fd, POLLOUT)) return done > 0 ? static_cast<ssize_t>(done) : -1;
    announce_by(fd);
    ssize_t written = 0;
    do {
      written = REAL(write)(fd, from + done, std::min<std::size_t>(bytes - done, PIPE_BUF));
      if (written > 0) done += static_cast<std::size_t>(written);
    } while (written > 0 && done < bytes && is_ready(fd, POLLOUT));
    if (written < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
  } while (done < bytes);
  return static_cast<ssize_t>(done);
}

// A look by a system call that does not wait. A signal during it would end it at a random virtual time: the simulator
// ends waits at the signal's time. Signals that only `mask` lets in come at a look, and must end it.
template <class Call>
int look_once(const sigset_t* mask, Call&& call) {
  for (;;) {
    const int result = call();
    if (result >= 0 || errno != EINTR || mask != nullptr) return result;
  }
}

// `mask`: of signals while it waits, or null.
int poll_fds(pollfd* fds, nfds_t count, std::int64_t deadline, const sigset_t* mask) {
  const auto look = [=] {
    const timespec at_once{};
    return look_once(mask, [&] { return REAL(ppoll)(fds, count, &at_once, mask); });
  };
  return look_until(deadline, false, 0, look, [=](const Look& at) {
    for (nfds_t i = 0; i < count; ++i) {
      if ((fds[i].revents & POLLIN) != 0) settle_input(at, fds[i].fd);
    }
  });
}

int select_fds(int count, fd_set* reads, fd_set* writes, fd_set* errors, std::int64_t deadline, const sigset_t* mask) {
  const auto bytes = static_cast<std::size_t>((std::max(count, 0) + NFDBITS - 1) / NFDBITS) * sizeof(fd_mask);
  if (bytes > sizeof(fd_set)) {
    const timespec at_once{};
    return REAL(pselect)(count, reads, writes, errors, &at_once, mask);
  }
  fd_set wanted[3] = {};
  fd_set* const sets[3] = {reads, writes, errors};
  for (int i = 0; i < 3; ++i) {
    if (sets[i] != nullptr) __builtin_memcpy(&wanted[i], sets[i], bytes);
  }
  const auto look = [&] {
    for (int i = 0; i < 3; ++i) {
      if (sets[i] != nullptr) __builtin_memcpy(sets[i], &wanted[i], bytes);
    }
    const timespec at_once{};
    return look_once(mask, [&] { return REAL(pselect)(count, reads, writes, errors, &at_once, mask); });
  };
  return look_until(deadline, false, 0, look, [=](const Look& at) {
    for (int fd = 0; reads != nullptr && fd < count; ++fd) {
      if (FD_ISSET(fd, reads)) settle_input(at, fd);
    }
  });
}

// Which file descriptors are ready is not known here: all that was sent has come when this returns.
int epoll(int fd, epoll_event* events, int most, std::int64_t deadline, const sigset_t* mask) {
  const auto look = [=] { return look_once(mask, [=] { return REAL(epoll_pwait)(fd, events, most, 0, mask); }); };
  return look_until(deadline, false, 0, look, [](const Look& at) { at.settle(0); });
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED ssize_t read(int fd, void* to, std::size_t bytes) {
  return read_from(fd, [=] { return REAL(read)(fd, to, bytes); });
}

EXPORTED ssize_t __read_chk(int fd, void* to, std::size_t bytes, std::size_t room) {
  return read_from(fd, [=] { return REAL(__read_chk)(fd, to, bytes, room); });
}

EXPORTED ssize_t readv(int fd, const iovec* parts, int count) {
  return read_from(fd, [=] { return REAL(readv)(fd, parts, count); });
}

EXPORTED ssize_t write(int fd, const void* from, std::size_t bytes) {
  if (is_connection_manager(fd)) return write_connection_manager(fd, from, bytes);
  if (!waits_for_others(fd)) return REAL(write)(fd, from, bytes);
  if (is_socket(fd)) {
    iovec part{const_cast<void*>(from), bytes};
    return send_parts(fd, &part, 1);
  }
  return write_parts(fd, static_cast<const std::byte*>(from), bytes);
}

EXPORTED ssize_t writev(int fd, const iovec* parts, int count) {
  if (!waits_for_others(fd)) return REAL(writev)(fd, parts, count);
  if (is_socket(fd)) return send_parts(fd, parts, count);
  ssize_t done = 0;
  for (int i = 0; i < count; ++i) {
    const ssize_t written = write_parts(fd, static_cast<const std::byte*>(parts[i].iov_base), parts[i].iov_len);
    if (written < 0) return done > 0 ? done : -1;
    done += written;
    if (static_cast<std::size_t>(written) < parts[i].iov_len) break;
  }
  return done;
}

EXPORTED ssize_t sendfile(int to, int from, off_t* offset, std::size_t bytes) {
  if (!waits_for_others(to)) return REAL(sendfile)(to, from, offset, bytes);
  Look look;
  if (!await_ready(look, to, POLLOUT)) return -1;
  announce_by(to);
  return REAL(sendfile)(to, from, offset, bytes);
}

EXPORTED int eventfd_read(int fd, eventfd_t* value) {
  return read(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}

EXPORTED int eventfd_write(int fd, eventfd_t value) {
  return write(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

EXPORTED int close(int fd) {
  if (is_connection_manager(fd)) return close_connection_manager(fd);
  announce_by(fd);
  return REAL(close)(fd);
}

EXPORTED int dup2(int from, int to) {
  if (from != to) announce_by(to);  // it is closed
  return REAL(dup2)(from, to);
}

EXPORTED int dup3(int from, int to, int flags) {
  if (from != to) announce_by(to);
  return REAL(dup3)(from, to, flags);
}

EXPORTED int poll(pollfd* fds, nfds_t count, int limit) {
  if (!simulated()) return REAL(poll)(fds, count, limit);
  return poll_fds(fds, count, deadline_in_ms(limit), nullptr);
}

EXPORTED int ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t* mask) {
  if (!simulated()) return REAL(ppoll)(fds, count, limit, mask);
  return poll_fds(fds, count, deadline_of(limit), mask);
}

EXPORTED int __poll_chk(pollfd* fds, nfds_t count, int limit, std::size_t room) {
  if (!simulated() || count > room / sizeof *fds) return REAL(__poll_chk)(fds, count, limit, room);
  return poll_fds(fds, count, deadline_in_ms(limit), nullptr);
}

EXPORTED int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t* mask, std::size_t room) {
  if (!simulated() || count > room / sizeof *fds) return REAL(__ppoll_chk)(fds, count, limit, mask, room);
  return poll_fds(fds, count, deadline_of(limit), mask);
}

EXPORTED int select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* limit) {
  if (!simulated()) return REAL(select)(count, reads, writes, errors, limit);
  const std::int64_t deadline = deadline_of(limit);
  const int result = select_fds(count, reads, writes, errors, deadline, nullptr);
  if (limit != nullptr && deadline > 0 && deadline != kNever)
    *limit = to_timeval(std::max<std::int64_t>(deadline - now_ps(0), 0));
  return result;
}

EXPORTED int pselect(int count, fd_set* reads, fd_set* writes, fd_set* errors, const timespec* limit,
                     const sigset_t* mask) {
  if (!simulated()) return REAL(pselect)(count, reads, writes, errors, limit, mask);
  return select_fds(count, reads, writes, errors, deadline_of(limit), mask);
}

EXPORTED int epoll_pwait(int fd, epoll_event* events, int most, int limit, const sigset_t* mask) {
  if (!simulated()) return REAL(epoll_pwait)(fd, events, most, limit, mask);
  return epoll(fd, events, most, deadline_in_ms(limit), mask);
}

EXPORTED int epoll_wait(int fd, epoll_event* events, int most, int limit) {
  return epoll_pwait(fd, events, most, limit, nullptr);
}

EXPORTED int epoll_pwait2(int fd, epoll_event* events, int most, const timespec* limit, const sigset_t* mask) {
  if (!simulated()) return REAL(epoll_pwait2)(fd, events, most, limit, mask);
  return epoll(fd, events, most, deadline_of(limit), mask);
}
