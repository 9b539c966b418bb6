// What an object that a cache may hold has as its member `place`.
#pragma once

#include <cstdint>

namespace verbscope::sim {

// Where a cache has an entry.
struct CachePlace {
  std::uint32_t number = 0;  // from 1; 0: it has not
  bool cached() const { return number > 0; }
};

}  // namespace verbscope::sim
