#include "systems/raft/log_storage.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "common/error.hpp"
#include "common/units.hpp"

namespace verbscope {

namespace {

// Files grow by this much, so that fdatasync seldom has a new size to write.
constexpr std::uint64_t kGrowth = std::uint64_t{1} << 20;

bool is_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

// Returns false if the device is full.
bool write_all(int file, const std::string& path, std::uint64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && is_full(errno)) return false;
    if (written < 0) throw_errno("write " + path, errno);
    at += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void MemoryStorage::read(std::uint64_t at, std::span<std::byte> to) const {
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
}

bool MemoryStorage::reserve(std::uint64_t size) {
  if (size > limit_) return false;
  if (size > bytes_.size()) bytes_.resize(size);
  return true;
}

void MemoryStorage::write(std::uint64_t at, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(at));
}

bool MemoryStorage::replace(std::span<const std::byte> bytes) {
  if (bytes.size() > limit_) return false;
  bytes_.assign(bytes.begin(), bytes.end());
  return true;
}

FileStorage::FileStorage(std::string path, bool durable)
    : path_(std::move(path)), durable_(durable), file_(open_file(path_, O_CREAT)) {
  struct stat status {};
  verbscope::check("read the size of " + path_, fstat(file_.get(), &status));
  if (!S_ISREG(status.st_mode)) fail("{}: expected a regular file", path_);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

Fd FileStorage::open_file(const std::string& path, int flags) const {
  Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  verbscope::check("open " + path, file.get());
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) fail("{}: another process uses this file", path);
    throw_errno("lock " + path, errno);
  }
  return file;
}

void FileStorage::read(std::uint64_t at, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(file_.get(), to.data(), to.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read " + path_, errno);
    if (got == 0) fail("{}: the file became shorter", path_);
    at += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

void FileStorage::cut(std::uint64_t size) {
  verbscope::check("shorten " + path_, ftruncate(file_.get(), static_cast<off_t>(size)));
  size_ = size;
  sync();
}

bool FileStorage::reserve(std::uint64_t size) {
  if (size <= size_) return true;
  for (const std::uint64_t wanted : {round_up(size, kGrowth), size}) {
    int error = EINTR;
    while (error == EINTR) {
      error = posix_fallocate(file_.get(), static_cast<off_t>(size_), static_cast<off_t>(wanted - size_));
    }
    if (error == 0) {
      size_ = wanted;
      return true;
    }
    if (!is_full(error)) throw_errno("make room in " + path_, error);
  }
  return false;
}

void FileStorage::write(std::uint64_t at, std::span<const std::byte> bytes) {
  if (!write_all(file_.get(), path_, at, bytes)) fail("write {}: no space left in reserved blocks", path_);
}

void FileStorage::sync() {
  if (durable_) verbscope::check("fdatasync " + path_, fdatasync(file_.get()));
}

bool FileStorage::replace(std::span<const std::byte> bytes) {
  const std::string fresh = path_ + ".new";
  Fd file = open_file(fresh, O_CREAT | O_TRUNC);
  if (!write_all(file.get(), fresh, 0, bytes)) {
    unlink(fresh.c_str());
    return false;
  }
  if (durable_) verbscope::check("fdatasync " + fresh, fdatasync(file.get()));
  verbscope::check("rename " + fresh, rename(fresh.c_str(), path_.c_str()));
  if (durable_) {
    const std::filesystem::path folder = std::filesystem::absolute(path_).parent_path();
    const Fd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    verbscope::check("open " + folder.string(), directory.get());
    verbscope::check("fsync " + folder.string(), fsync(directory.get()));
  }
  file_ = std::move(file);
  size_ = bytes.size();
  return true;
}

}  // namespace verbscope
