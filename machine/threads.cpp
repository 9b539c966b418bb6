#include "machine/threads.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <numa.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <optional>

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
bool set_affinity(const std::vector<int>& cores) {
  const CpuMask mask;
  for (const int core : cores) numa_bitmask_setbit(mask.get(), static_cast<unsigned>(core));
  return numa_sched_setaffinity(0, mask.get()) >= 0;
}

void check_core_in(int core, const std::vector<int>& allowed) {
  if (!std::ranges::binary_search(allowed, core)) {
    fail("core {}: this process may run on cores {}", core, core_list(allowed));
  }
}

// Pins the calling thread to `core` and verifies it (affinity mask and sched_getcpu). Throws on failure.
void pin_this_thread(int core) {
  check_core(core);
  if (!set_affinity({core})) throw_errno(fmt::format("pin a thread to core {}", core), errno);
  const std::vector<int> now = allowed_cores();
  const int running_on = sched_getcpu();
  if (now != std::vector{core} || running_on != core) {
    fail("pin a thread to core {}: it may run on cores {} and runs on core {}", core, core_list(now), running_on);
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

ScopedAffinity::ScopedAffinity(const std::vector<int>& cores) : before_(allowed_cores()) {
  if (!cores.empty()) set_affinity(cores);
}

ScopedAffinity::~ScopedAffinity() {
  set_affinity(before_);
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

namespace {

// Returns the lock file of a core, open and locked; empty if another process has locked it; Fd(-1) if no lock is
// possible.
std::optional<Fd> lock_core(const std::filesystem::path& folder, int core) {
  const std::filesystem::path path = folder / fmt::format("verbscope-core-{}.lock", core);
  // An existing file is opened without O_CREAT, which the kernel refuses for another user's file in such a folder
  // (fs.protected_regular). A lock needs no write permission.
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) {
    file = Fd(open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (file.get() >= 0) static_cast<void>(fchmod(file.get(), 0666));  // regardless of the umask
  }
  if (file.get() < 0) return Fd();
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  return file;
}

}  // namespace

std::filesystem::path core_lock_folder() {
  return access("/run/lock", W_OK | X_OK) == 0 ? "/run/lock" : "/tmp";
}

bool CoreClaims::claim(int core) {
  std::optional<Fd> lock = lock_core(folder_, core);
  if (lock) locks_.push_back(std::move(*lock));
  return lock.has_value();
}

CoreChoice CoreClaims::claim_free(const std::vector<int>& allowed, std::size_t wanted) {
  CoreChoice choice;
  std::vector<int> held;
  for (const int core : allowed) {
    if (choice.cores.size() == wanted) return choice;
    (claim(core) ? choice.cores : held).push_back(core);
  }
  for (const int core : held) {
    if (choice.cores.size() == wanted) break;
    choice.cores.push_back(core);
    choice.contested.push_back(core);
  }
  return choice;
}

CoreChoice CoreClaims::claim_named(const std::vector<int>& named, std::size_t wanted) {
  CoreChoice choice{.cores = named, .contested = {}};
  std::vector<int> seen;
  for (std::size_t i = 0; i < std::min(wanted, named.size()); ++i) {
    if (std::ranges::find(seen, named[i]) != seen.end()) continue;
    seen.push_back(named[i]);
    if (!claim(named[i])) choice.contested.push_back(named[i]);
  }
  return choice;
}

CpuSeconds process_cpu() {
  rusage usage{};
  check("read the CPU usage of this process", getrusage(RUSAGE_SELF, &usage));
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

}  // namespace verbscope
