// The files by which programs look for the device. Nothing can be read from them: who opens one finds what the machine
// has. System calls are made directly, because releases of the C library differ in the names of these functions.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "simulate/preload/connection_manager.hpp"
#include "simulate/preload/exported.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

struct DeviceFile {
  const char* path;
  mode_t mode;
  dev_t number = 0;  // of a device
};

// Major and minor number (Documentation/admin-guide/devices.txt of Linux).
constexpr dev_t kUverbs = 231 << 8 | 192;

// hca_type: only the adapters' own drivers have it, those of emulated devices do not.
constexpr DeviceFile kDeviceFiles[] = {
    {"/dev/infiniband/uverbs0", S_IFCHR | 0666, kUverbs},
    {kConnectionManagerPath, S_IFCHR | 0666, kConnectionManagerDevice},
    {"/sys/class/infiniband/sim0", S_IFDIR | 0755},
    {"/sys/class/infiniband/sim0/hca_type", S_IFREG | 0444},
    {"/sys/class/infiniband_verbs/uverbs0", S_IFDIR | 0755},
};
constexpr const char* kDriverLink = "/sys/class/infiniband/sim0/device/driver";

bool is(const char* path, const char* name) {
  return simulated() && path != nullptr && std::strcmp(path, name) == 0;
}

const DeviceFile* find_file(const char* path) {
  const auto* const found = std::find_if(std::begin(kDeviceFiles), std::end(kDeviceFiles),
                                         [path](const DeviceFile& file) { return is(path, file.path); });
  return found == std::end(kDeviceFiles) ? nullptr : found;
}

int describe(const DeviceFile& file, struct stat* status) {
  *status = {};
  status->st_mode = file.mode;
  status->st_nlink = 1;
  status->st_rdev = file.number;
  return 0;
}

int status_of(const char* path, struct stat* status, int flags) {
  if (const DeviceFile* const file = find_file(path)) return describe(*file, status);
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, status, flags));
}

static_assert(sizeof(struct stat) == sizeof(struct stat64));

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int stat(const char* path, struct stat* status) {
  return status_of(path, status, 0);
}
EXPORTED int stat64(const char* path, struct stat64* status) {
  return status_of(path, reinterpret_cast<struct stat*>(status), 0);
}
EXPORTED int lstat(const char* path, struct stat* status) {
  return status_of(path, status, AT_SYMLINK_NOFOLLOW);
}
EXPORTED int lstat64(const char* path, struct stat64* status) {
  return status_of(path, reinterpret_cast<struct stat*>(status), AT_SYMLINK_NOFOLLOW);
}
// Programs that were linked with a C library older than 2.33 call these.
EXPORTED int __xstat(int, const char* path, struct stat* status) {
  return status_of(path, status, 0);
}
EXPORTED int __xstat64(int, const char* path, struct stat64* status) {
  return status_of(path, reinterpret_cast<struct stat*>(status), 0);
}

EXPORTED int access(const char* path, int mode) {
  const DeviceFile* const file = find_file(path);
  if (file == nullptr) return static_cast<int>(syscall(SYS_access, path, mode));
  const bool allowed = (mode & X_OK) == 0 && ((mode & W_OK) == 0 || (file->mode & S_IWOTH) != 0);
  if (!allowed) errno = EACCES;
  return allowed ? 0 : -1;
}

EXPORTED ssize_t readlink(const char* path, char* target, size_t room) {
  if (!is(path, kDriverLink)) return syscall(SYS_readlink, path, target, room);
  Request request(Operation::describe_adapter);
  if (request.ask() != 0) {
    errno = ENOENT;
    return -1;
  }
  const auto adapter = request.get<AdapterFacts>();
  char whole[64] = "../../../bus/pci/drivers/";
  std::strcat(whole, adapter.driver);
  const std::size_t length = std::min(room, std::strlen(whole));
  std::memcpy(target, whole, length);
  return static_cast<ssize_t>(length);
}
