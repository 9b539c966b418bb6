// Limits of the simulated adapter that the profile does not set, as generous as those of adapters; and the control
// path's way to return errors.
#pragma once

#include <cerrno>

namespace verbscope::sim {

inline constexpr int kMaxQueueDepth = 16384;
inline constexpr int kMaxSge = 16;

template <class T>
T* fail_with(int error) {
  errno = error;
  return nullptr;
}

}  // namespace verbscope::sim
