// The limits of the simulated adapter where the profile does not say; generous, as adapters are. And how the control
// path refuses.
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
