// Carousel's timing wheel (Saeed et al., SIGCOMM 2017): packets that wait for their time to be sent, after eRPC (NSDI
// 2019, section 5.2.1). Packets of one slot leave in the order of their insertion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/units.hpp"

namespace verbscope {

template <class Entry>
class TimingWheel {
 public:
  static constexpr Picos kSlot{500'000};

  // `horizon`: the latest that a packet may be due after its insertion; it waits no longer than that.
  explicit TimingWheel(Picos horizon) : slots_(static_cast<std::size_t>(horizon / kSlot) + 2) {}

  std::size_t size() const { return size_; }

  // `due`: time of sending. Call reap(now) before, so that earlier packets are out.
  void insert(const Entry& entry, Picos due, Picos now) {
    const std::int64_t first = now / kSlot, last = first + static_cast<std::int64_t>(slots_.size()) - 2;
    std::int64_t at = due / kSlot + 1;  // a slot is due when it is over
    if (at <= first) at = first + 1;
    if (at > last) at = last;
    if (size_ == 0) next_ = first + 1;
    slots_[static_cast<std::size_t>(at) % slots_.size()].push_back(entry);
    ++size_;
  }

  // Hands the packets that are due at `now` to `release(entry)`.
  template <class Release>
  void reap(Picos now, Release&& release) {
    if (size_ == 0) return;
    for (const std::int64_t until = now / kSlot; next_ <= until && size_ > 0; ++next_) {
      std::vector<Entry>& slot = slots_[static_cast<std::size_t>(next_) % slots_.size()];
      for (const Entry& entry : slot) release(entry);
      size_ -= slot.size();
      slot.clear();
    }
  }

  // Drops the packets for which `unwanted` is true.
  template <class Unwanted>
  void remove(Unwanted&& unwanted) {
    for (std::vector<Entry>& slot : slots_) size_ -= std::erase_if(slot, unwanted);
  }

  // When the next slot with packets is due; only if there are some.
  Picos next_due() const {
    std::int64_t at = next_;
    while (slots_[static_cast<std::size_t>(at) % slots_.size()].empty()) ++at;
    return kSlot * at;
  }

 private:
  std::vector<std::vector<Entry>> slots_;
  std::int64_t next_ = 0;  // number of the first slot that was not released
  std::size_t size_ = 0;
};

}  // namespace verbscope
