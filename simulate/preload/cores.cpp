// The cores on which threads may run: what programs ask for and see. In truth all run on one (SharedMemory::core).
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

struct ThreadCores {
  cpu_set_t set;
  bool asked_for;
};
thread_local constinit ThreadCores thread_cores{};

int set_cores(std::size_t bytes, const cpu_set_t* wanted) {
  cpu_set_t set{}, common;
  std::memcpy(&set, wanted, std::min(bytes, sizeof set));
  CPU_AND(&common, &set, &cores());
  if (CPU_COUNT(&common) == 0) return EINVAL;
  thread_cores = {.set = common, .asked_for = true};
  return 0;
}

int get_cores(std::size_t bytes, cpu_set_t* to) {
  const cpu_set_t& set = thread_cores.asked_for ? thread_cores.set : cores();
  if (bytes < sizeof set && CPU_COUNT_S(bytes, &set) < CPU_COUNT(&set)) return EINVAL;
  std::memset(to, 0, bytes);
  std::memcpy(to, &set, std::min(bytes, sizeof set));
  return 0;
}

int returned(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

bool is_this_thread(pid_t id) {
  return id == 0 || id == own_channel().thread;
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* set) noexcept {
  if (!simulated()) return REAL(sched_setaffinity)(thread, bytes, set);
  return is_this_thread(thread) ? returned(set_cores(bytes, set)) : 0;
}
EXPORTED int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* set) noexcept {
  return simulated() ? returned(get_cores(bytes, set)) : REAL(sched_getaffinity)(thread, bytes, set);
}

EXPORTED int pthread_setaffinity_np(pthread_t thread, std::size_t bytes, const cpu_set_t* set) noexcept {
  if (!simulated()) return REAL(pthread_setaffinity_np)(thread, bytes, set);
  return pthread_equal(thread, pthread_self()) != 0 ? set_cores(bytes, set) : 0;
}
EXPORTED int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* set) noexcept {
  return simulated() ? get_cores(bytes, set) : REAL(pthread_getaffinity_np)(thread, bytes, set);
}
