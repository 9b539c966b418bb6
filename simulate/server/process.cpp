#include "simulate/server/process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/error.hpp"
#include "simulate/server/connection_manager.hpp"

namespace verbscope::simulate {

void ProcessMemory::read(const void* from, std::byte* to, std::uint64_t bytes) const {
  const iovec here{to, bytes}, there{const_cast<void*>(from), bytes};
  const ssize_t done = process_vm_readv(process_, &here, 1, &there, 1, 0);
  const auto copied = static_cast<std::uint64_t>(std::max<ssize_t>(done, 0));
  if (copied < bytes) std::memset(to + copied, 0, bytes - copied);
}

void ProcessMemory::write(void* to, const std::byte* from, std::uint64_t bytes) const {
  const iovec here{const_cast<std::byte*>(from), bytes}, there{to, bytes};
  static_cast<void>(process_vm_writev(process_, &here, 1, &there, 1, 0));
}

bool ProcessMemory::accessible(const void* place) const {
  std::byte byte{};
  const iovec here{&byte, 1}, there{const_cast<void*>(place), 1};
  return process_vm_readv(process_, &here, 1, &there, 1, 0) == 1;
}

void ProcessMemory::check_access() const {
  std::byte byte{};
  const iovec here{&byte, 1}, there{nullptr, 1};
  if (process_vm_readv(process_, &here, 1, &there, 1, 0) >= 0 || errno != EPERM) return;
  fail(
      "the kernel refuses access to the memory of process {}, which opens the simulated device: run it as the user of "
      "the "
      "simulator, not setuid, and with `sysctl kernel.yama.ptrace_scope` of 0 or 1",
      process_);
}

Process::Process(int id, int number, int node, sim::SimProvider& provider, Picos wakeup, ConnectionManager& connections)
    : waits(wakeup),
      id_(id),
      number_(number),
      node_(node),
      provider_(provider),
      connections_(connections),
      memory_(id),
      pidfd_(check("pidfd_open", static_cast<int>(syscall(SYS_pidfd_open, id, 0)))) {}

bool Process::alive() const {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

bool Process::ends() const {
  constexpr int kMomentMs = 1000;  // it may have much memory to give back
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return poll(&ended, 1, kMomentMs) != 0;
}

int Process::copy_fd(int fd) const {
  return static_cast<int>(syscall(SYS_pidfd_getfd, pidfd_.get(), fd, 0));
}

std::uint32_t Process::add(const Entry& entry) {
  if (free_.empty()) {
    objects_.push_back({});
    free_.push_back(static_cast<std::uint32_t>(objects_.size()));
  }
  const std::uint32_t handle = free_.back();
  free_.pop_back();
  objects_[handle - 1] = entry;
  return handle;
}

void Process::remove(std::uint32_t handle) {
  objects_[handle - 1].object = nullptr;
  free_.push_back(handle);
}

int Process::destroy(const Entry& entry) {
  switch (entry.kind) {
    case Kind::context:
      return provider_.close(static_cast<ibv_context*>(entry.object));
    case Kind::pd:
      return provider_.dealloc_pd(static_cast<ibv_pd*>(entry.object));
    case Kind::td:
      return provider_.dealloc_td(static_cast<ibv_td*>(entry.object));
    case Kind::xrcd:
      return provider_.close_xrcd(static_cast<ibv_xrcd*>(entry.object));
    case Kind::mr:
      return provider_.dereg_mr(static_cast<ibv_mr*>(entry.object));
    case Kind::mw:
      return provider_.dealloc_mw(static_cast<ibv_mw*>(entry.object));
    case Kind::channel:
      return provider_.destroy_comp_channel(static_cast<ibv_comp_channel*>(entry.object));
    case Kind::cq:
      return provider_.destroy_cq(static_cast<ibv_cq*>(entry.object));
    case Kind::srq:
      return provider_.destroy_srq(static_cast<ibv_srq*>(entry.object));
    case Kind::qp:
      return provider_.destroy_qp(static_cast<ibv_qp*>(entry.object));
    case Kind::ah:
      return provider_.destroy_ah(static_cast<ibv_ah*>(entry.object));
  }
  return 0;
}

// Parents refuse while they have children, so that a few rounds destroy all.
void Process::destroy_all(const ibv_context* context) {
  for (bool any = true; any;) {
    any = false;
    for (std::uint32_t i = 0; i < objects_.size(); ++i) {
      const Entry& entry = objects_[i];
      if (entry.object == nullptr || (context != nullptr && entry.context != context) || destroy(entry) != 0) continue;
      remove(i + 1);
      any = true;
    }
  }
}

void Process::destroy_objects() {
  connections_.end(*this);
  destroy_all(nullptr);
  objects_.clear();
  free_.clear();
  timers.clear();
}

void Process::bury() {
  destroy_objects();
  pidfd_ = Fd();
  buried_ = true;
}

}  // namespace verbscope::simulate
