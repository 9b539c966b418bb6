#include "systems/ordered/keys.hpp"

#include <algorithm>

namespace verbscope::ordered {

KeyTable::KeyTable(std::uint64_t keys) : keys_(keys), sums_(keys + 1), first_values_(keys + 1) {
  for (std::uint64_t i = 0; i < keys; ++i) keys_[i] = key_of(i);
  std::ranges::sort(keys_);
  for (std::uint64_t i = 0; i < keys; ++i) {
    sums_[i + 1] = sums_[i] + keys_[i];
    first_values_[i + 1] = first_values_[i] + value_of(keys_[i], 0);
  }
}

}  // namespace verbscope::ordered
