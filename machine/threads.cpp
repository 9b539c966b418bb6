#include "machine/threads.hpp"

#include <fmt/format.h>
#include <numa.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <future>

#include "common/error.hpp"

namespace verbscope {

namespace {

// A CPU mask of the size that the machine needs.
class CpuMask {
 public:
  CpuMask() : mask_(numa_allocate_cpumask(), numa_free_cpumask) {}
  bitmask* get() const { return mask_.get(); }

 private:
  std::unique_ptr<bitmask, void (*)(bitmask*)> mask_;
};

CpuMask affinity_of_this_thread() {
  CpuMask mask;
  if (numa_sched_getaffinity(0, mask.get()) < 0) throw_errno("read the CPU affinity", errno);
  return mask;
}

std::vector<int> cores_of(const CpuMask& mask) {
  std::vector<int> cores;
  for (unsigned core = 0; core < mask.get()->size; ++core) {
    if (numa_bitmask_isbitset(mask.get(), core) != 0) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

// Returns false, with errno, if the kernel refuses.
bool keep_this_thread_to(const std::vector<int>& cores) {
  const CpuMask mask;
  for (const int core : cores) numa_bitmask_setbit(mask.get(), static_cast<unsigned>(core));
  return numa_sched_setaffinity(0, mask.get()) >= 0;
}

void check_core_in(int core, const std::vector<int>& allowed) {
  if (!std::ranges::binary_search(allowed, core)) {
    fail("core {}: this process may run on cores {}", core, core_list(allowed));
  }
}

}  // namespace

std::vector<int> allowed_cores() {
  return cores_of(affinity_of_this_thread());
}

std::string core_list(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t first = 0; first < cores.size();) {
    std::size_t last = first;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[first]);
    if (last > first) text += fmt::format("-{}", cores[last]);
    first = last + 1;
  }
  return text;
}

void check_core(int core) {
  check_core_in(core, allowed_cores());
}

void pin_this_thread(int core) {
  check_core(core);
  if (!keep_this_thread_to({core})) throw_errno(fmt::format("pin a thread to core {}", core), errno);
  const std::vector<int> now = allowed_cores();
  const int running_on = sched_getcpu();
  if (now != std::vector{core} || running_on != core) {
    fail("pin a thread to core {}: it is allowed on {} and runs on {}", core, core_list(now), running_on);
  }
}

ThreadKeptTo::ThreadKeptTo(const std::vector<int>& cores) : before_(allowed_cores()) {
  if (!cores.empty()) keep_this_thread_to(cores);
}

ThreadKeptTo::~ThreadKeptTo() {
  keep_this_thread_to(before_);
}

PinnedThread::PinnedThread(int core, std::function<void(std::stop_token)> body)
    : core_(core), failure_(std::make_unique<std::exception_ptr>()) {
  std::promise<void> pinned;
  std::future<void> outcome = pinned.get_future();
  thread_ = std::jthread([core, body = std::move(body), ready = std::move(pinned),
                          failure = failure_.get()](const std::stop_token& stop) mutable {
    try {
      pin_this_thread(core);
    } catch (...) {
      ready.set_exception(std::current_exception());
      return;
    }
    ready.set_value();
    try {
      body(stop);
    } catch (...) {
      *failure = std::current_exception();
    }
  });
  outcome.get();
}

void PinnedThread::join() {
  if (thread_.joinable()) thread_.join();
  if (const std::exception_ptr failure = std::exchange(*failure_, nullptr)) std::rethrow_exception(failure);
}

}  // namespace verbscope
