// The locks of the atomic unit. An atomic holds the slot that its address chooses while its read-modify-write crosses
// PCIe; who finds it taken waits in line for it.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "nic_sim/profile.hpp"

namespace verbscope::sim {

class AtomicSlots {
 public:
  explicit AtomicSlots(const NicProfile& profile)
      : mask_(profile.atomic_slots - 1), lowest_bit_(profile.atomic_slot_lowest_bit) {}

  std::uint64_t slot_of(std::uint64_t address) const { return address >> lowest_bit_ & mask_; }

  // Takes the slot; or, when it is taken, has responder unit `unit` wait for it: false.
  bool take(std::uint64_t slot, int unit) {
    const auto [place, free] = taken_.try_emplace(slot);
    if (!free) place->second.push_back(unit);
    return free;
  }
  // Frees the slot, or gives it to the unit that has waited longest: its number, else kNobody.
  static constexpr int kNobody = -1;
  int give_up(std::uint64_t slot) {
    const auto place = taken_.find(slot);
    if (place->second.empty()) {
      taken_.erase(place);
      return kNobody;
    }
    const int unit = place->second.front();
    place->second.pop_front();
    return unit;
  }

 private:
  std::uint64_t mask_;
  int lowest_bit_;
  std::unordered_map<std::uint64_t, std::deque<int>> taken_;  // slots in use, and who waits for each
};

}  // namespace verbscope::sim
