#include "machine/core_claims.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace verbscope {

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

CoreChoice CoreClaims::choose(const std::vector<int>& allowed, std::size_t wanted) {
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

CoreChoice CoreClaims::take(const std::vector<int>& named, std::size_t wanted) {
  CoreChoice choice{.cores = named, .contested = {}};
  std::vector<int> seen;
  for (std::size_t i = 0; i < std::min(wanted, named.size()); ++i) {
    if (std::ranges::find(seen, named[i]) != seen.end()) continue;
    seen.push_back(named[i]);
    if (!claim(named[i])) choice.contested.push_back(named[i]);
  }
  return choice;
}

}  // namespace verbscope
