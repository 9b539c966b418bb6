// The family of a device's adapter.
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "wire/nic_family.hpp"

namespace verbscope::driver {

// Derived from the device's kernel driver; none if it is another's or has no driver. Allocates nothing.
std::optional<NicFamily> family_of_device(const ibv_device* device);

}  // namespace verbscope::driver
