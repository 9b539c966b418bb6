#include "machine/node.hpp"

#include <poll.h>

#include <cerrno>

namespace verbscope {

namespace {

timespec to_timespec(Nanos time) {
  const std::int64_t left = time.count() > 0 ? time.count() : 0;
  return {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
}

}  // namespace

ibv_cq* await_host_event(ibv_comp_channel* channel, Nanos timeout) {
  pollfd readable{.fd = channel->fd, .events = POLLIN, .revents = 0};
  const auto end = std::chrono::steady_clock::now() + timeout;
  int ready = -1;
  do {
    const timespec left = to_timespec(end - std::chrono::steady_clock::now());
    ready = ppoll(&readable, 1, &left, nullptr);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    if (ready == 0) errno = ETIMEDOUT;
    return nullptr;
  }
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel, &cq, &context) != 0) return nullptr;
  ibv_ack_cq_events(cq, 1);
  return cq;
}

}  // namespace verbscope
