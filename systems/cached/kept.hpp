// The values that a client keeps, with their versions, of a share of the keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "systems/cached/message.hpp"
#include "systems/store/values.hpp"

namespace verbscope::cached {

class KeptValues {
 public:
  // Of `keys` keys those are kept that a hash chooses, `percent` of them; those that were there before the run from the
  // beginning. Memory is used as keys are asked for.
  KeptValues(const StoreValues& values, std::uint64_t keys, std::uint32_t percent)
      : values_(values),
        percent_(percent),
        item_(item_bytes(static_cast<std::uint32_t>(values.bytes()))),
        there_(percent == 0 ? 0 : keys),
        items_(std::make_unique_for_overwrite<std::byte[]>(there_.size() * item_)) {}

  bool keeps(const KeyHash& key) const { return (key.high & 0xffffffff) * 100 >> 32 < percent_; }

  // Copies value and version of a key that is kept.
  void copy(std::uint64_t key, std::byte* to) {
    std::byte* const item = items_.get() + key * item_;
    if (!there_[key]) {
      values_.fill(item, key, StoreVersion());
      const std::uint64_t version = StoreVersion().word();
      std::memcpy(item + values_.bytes(), &version, sizeof version);
      there_[key] = true;
    }
    std::memcpy(to, item, item_);
  }
  // Keeps others from now on.
  void keep(std::uint64_t key, const std::byte* item) {
    std::memcpy(items_.get() + key * item_, item, item_);
    there_[key] = true;
  }

 private:
  StoreValues values_;
  std::uint32_t percent_;
  std::size_t item_;  // bytes
  std::vector<bool> there_;
  std::unique_ptr<std::byte[]> items_;  // of a key that is not there: nothing yet
};

}  // namespace verbscope::cached
