#include "drivers_patch/device_family.hpp"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <string_view>

namespace verbscope::driver {

std::optional<NicFamily> family_of_device(const ibv_device* device) {
  if (device == nullptr) return std::nullopt;
  char path[sizeof device->ibdev_path + 32];
  char target[PATH_MAX];
  // An emulated device (rxe, siw) on an adapter's Ethernet port has the same bus device. Only the adapter's own has
  // hca_type.
  snprintf(path, sizeof path, "%s/hca_type", device->ibdev_path);
  if (access(path, F_OK) != 0) return std::nullopt;
  snprintf(path, sizeof path, "%s/device/driver", device->ibdev_path);
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) return std::nullopt;
  const std::string_view whole(target, static_cast<std::size_t>(length));
  const std::string_view driver = whole.substr(whole.find_last_of('/') + 1);
  for (const FamilyFacts& family : kFamilies) {
    if (family.driver == driver) return family.value;
  }
  return std::nullopt;
}

}  // namespace verbscope::driver
