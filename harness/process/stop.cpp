#include "harness/process/stop.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

sigset_t end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  return signals;
}

int block_end_signals() {
  const sigset_t signals = end_signals();
  check("block the signals that stop", sigprocmask(SIG_BLOCK, &signals, nullptr));
  return check("signalfd", signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

bool StopSource::pending() const {
  pollfd polled{fd_, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

Interrupt::Interrupt() : StopSource(block_end_signals()) {
  set_output_stop(fd());
}

Interrupt::~Interrupt() {
  set_output_stop(-1);
  signalfd_siginfo info;  // consumes a pending signal, so that it is not delivered later
  while (read(fd(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
  }
  close(fd());
  const sigset_t signals = end_signals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace verbscope
