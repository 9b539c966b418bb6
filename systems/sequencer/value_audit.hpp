// The exact account of the values of a sequence that have been received: one bit a value, set once. A second receipt,
// or a value from before the beginning, is refused. The threads of a process share one; those of several processes are
// merged.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace verbscope {

class ValueAudit {
 public:
  // A run may hand out as many values: 35 s at 122 Mops. Their bits take memory where values have come, 512 MB at
  // most.
  static constexpr std::uint64_t kCapacity = std::uint64_t{1} << 32;

  // Audits the values from `first` on. Throws Error when there is no memory.
  explicit ValueAudit(std::uint64_t first);
  ValueAudit(const ValueAudit&) = delete;
  ValueAudit& operator=(const ValueAudit&) = delete;
  ~ValueAudit();

  // False when the value was noted before, or lies outside. Any thread; allocates nothing.
  bool note(std::uint64_t value) {
    const std::uint64_t offset = value - first_;
    if (offset >= kCapacity) [[unlikely]]
      return false;
    const std::uint64_t bit = std::uint64_t{1} << offset % 64;
    return (std::atomic_ref(words_[offset / 64]).fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

  // After the run: how many of the first `values` values were noted.
  std::uint64_t noted(std::uint64_t values) const;

  // The first `values` bits as hexadecimal digits, four values each.
  std::string pack(std::uint64_t values) const;
  // Notes what another process noted and packed, and returns how many of those values were noted here as well. Throws
  // Error with `where` on other text.
  std::uint64_t merge(const std::string& packed, const std::string& where);

  std::uint64_t first() const { return first_; }

 private:
  std::uint64_t first_;
  std::uint64_t* words_ = nullptr;
};

// The fingerprint of a set of values is the sum of mix() over them: sets that differ have the same with a chance of
// 2^-64.
std::uint64_t fingerprint_of_range(std::uint64_t first, std::uint64_t count);

}  // namespace verbscope
