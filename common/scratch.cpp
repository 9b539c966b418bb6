#include "common/scratch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "common/error.hpp"

namespace verbscope {

// One path in a list that a signal handler reads. Entries are never removed, only reused.
struct ScratchEntry {
  std::array<char, PATH_MAX> path{};
  std::atomic<bool> used{false};
  ScratchEntry* next = nullptr;
};

namespace {

constexpr int kMaxFolderLevels = 8;  // levels of nested folders to remove; verbscope makes one or two

std::atomic<ScratchEntry*> first_entry{nullptr};
std::mutex entries_mutex;
pid_t owner = 0;

// An entry as returned by SYS_getdents64.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t bytes;
  std::uint8_t type;
  std::array<char, 1> name;
};

// Removes `name` in the folder `at` with its contents. Calls only async-signal-safe functions.
void remove_tree(int at, const char* name, int levels) {
  if (unlinkat(at, name, 0) == 0 || levels == 0) return;
  const int folder = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(DirectoryEntry) std::array<char, 1024> block{};
  for (bool removed = true; removed;) {  // restarts from the beginning: removing entries may move unread ones
    removed = false;
    lseek(folder, 0, SEEK_SET);
    const long got = syscall(SYS_getdents64, folder, block.data(), block.size());
    for (long at_byte = 0; at_byte < got;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(block.data() + at_byte);
      const char* inner = entry->name.data();
      if (std::strcmp(inner, ".") != 0 && std::strcmp(inner, "..") != 0) {
        remove_tree(folder, inner, levels - 1);
        removed = removed || faccessat(folder, inner, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
      }
      at_byte += entry->bytes;
    }
  }
  close(folder);
  unlinkat(at, name, AT_REMOVEDIR);
}

// The handler of signals that end the program: removes the paths, then lets the signal take effect.
void remove_all_and_end(int number) {
  if (getpid() == owner) {  // not in a child before its exec
    for (ScratchEntry* each = first_entry.load(); each != nullptr; each = each->next) {
      if (each->used.load()) remove_tree(AT_FDCWD, each->path.data(), kMaxFolderLevels);
    }
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

// Installs the handler for signals that would end the program and have no other handler.
void handle_signals() {
  constexpr std::array kHarmless = {SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH, SIGKILL, SIGSTOP};
  owner = getpid();
  struct sigaction action {};
  action.sa_handler = remove_all_and_end;
  sigfillset(&action.sa_mask);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction now {};
    if (std::ranges::find(kHarmless, number) != kHarmless.end() || sigaction(number, nullptr, &now) != 0) continue;
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) sigaction(number, &action, nullptr);
  }
}

ScratchEntry* free_entry() {
  for (ScratchEntry* each = first_entry.load(); each != nullptr; each = each->next) {
    if (!each->used.load()) return each;
  }
  if (first_entry.load() == nullptr) handle_signals();
  auto* const entry = new ScratchEntry;  // never freed: a handler may read it at any time
  entry->next = first_entry.load();
  first_entry.store(entry);
  return entry;
}

}  // namespace

Scratch::Scratch(const std::filesystem::path& path) {
  const std::string text = path.string();
  if (text.size() >= PATH_MAX) fail("{}: the path is too long", text);
  const std::lock_guard lock(entries_mutex);
  entry_ = free_entry();
  std::ranges::copy(text, entry_->path.begin());
  entry_->path[text.size()] = '\0';
  entry_->used.store(true);
}

Scratch::~Scratch() {
  if (entry_ == nullptr) return;
  std::error_code ignored;
  std::filesystem::remove_all(entry_->path.data(), ignored);
  keep();
}

void Scratch::keep() {
  if (entry_ != nullptr) entry_->used.store(false);
  entry_ = nullptr;
}

}  // namespace verbscope
