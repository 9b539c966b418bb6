// The family of a device's adapter.
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "wire/nic_family.hpp"

namespace verbscope::driver {

// By the kernel's driver of the device; none: it is another's, or there is none. Allocates nothing.
std::optional<NicFamily> family_of_device(const ibv_device* device);

}  // namespace verbscope::driver
