#include "simulate/preload/looks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/sockets.hpp"

namespace verbscope::simulate {
namespace {

mode_t type_of(int fd) {
  struct stat status {};
  return REAL(fstat)(fd, &status) == 0 ? status.st_mode & S_IFMT : S_IFREG;
}

}  // namespace

std::int64_t deadline_in_ms(int limit) {
  return limit < 0 ? kNever : limit == 0 ? 0 : after(now_ps(0), limit * (kPicosPerSecond / 1000));
}

Look::Look() {
  now_ps(kSystemCallPs);
  Request request(Operation::look_outside);
  request.ask();
  room_is_wanted_ = request.get<bool>();
  unseen_ = request.get<bool>();
}

Waited Look::wait(std::int64_t deadline, bool restarts, bool for_room) {
  Request request(Operation::wait_outside);
  const int error = request.put(deadline).put(for_room).put(!std::exchange(waited_, true)).ask(restarts);
  room_is_wanted_ = request.get<bool>();
  unseen_ = request.get<bool>();
  return error == EINTR ? Waited::interrupted : error == ETIMEDOUT ? Waited::timed_out : Waited::look_again;
}

void Look::settle(std::uint64_t key) const {
  if (unseen_) ask(Operation::await_sight, key);
}

void Look::has_read() const {
  if (room_is_wanted_) announce(kPipePs);
}

void announce(std::int64_t latency_ps, std::uint64_t key) {
  now_ps(kSystemCallPs);
  ask(Operation::notify, latency_ps, key);
}

void announce_by(int fd) {
  if (!simulated()) return;
  const mode_t type = type_of(fd);
  if (type != S_IFSOCK && type != S_IFIFO && type != 0) return;
  const std::uint64_t key = type == S_IFSOCK ? key_to_peer(fd) : 0;
  announce(key != 0 ? kNetworkPs : kPipePs, key);
}

bool waits_for_others(int fd) {
  if (!simulated()) return false;
  const mode_t type = type_of(fd);
  return type == S_IFSOCK || type == S_IFIFO || type == 0;  // 0: of no file, such as eventfd(2)
}

bool is_socket(int fd) {
  return simulated() && type_of(fd) == S_IFSOCK;
}

bool blocks(int fd) {
  return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

bool is_ready(int fd, short events) {
  pollfd one{fd, events, 0};
  return TEMP_FAILURE_RETRY(REAL(poll)(&one, 1, 0)) != 0;
}

bool await_ready(Look& look, int fd, short events, std::int64_t deadline) {
  while (!is_ready(fd, events)) {
    if (!blocks(fd)) return true;
    const Waited waited = look.wait(deadline, true, (events & POLLOUT) != 0);
    if (waited == Waited::look_again || (waited == Waited::timed_out && is_ready(fd, events))) continue;
    errno = waited == Waited::interrupted ? EINTR : EAGAIN;
    return false;
  }
  if (look.must_settle() && (events & POLLIN) != 0) settle_input(look, fd);
  return true;
}

}  // namespace verbscope::simulate
