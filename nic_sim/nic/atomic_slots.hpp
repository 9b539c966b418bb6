// The locks of the atomic unit. An atomic holds the slot that its address chooses while its read-modify-write crosses
// PCIe; who finds it taken waits in line for it.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

class AtomicSlots {
 public:
  explicit AtomicSlots(const NicProfile& profile)
      : lowest_bit_(profile.atomic_slot_lowest_bit),
        slots_(profile.atomic_slots),
        next_(static_cast<std::size_t>(profile.responder_units), kNobody) {}

  std::uint64_t slot_of(std::uint64_t address) const { return address >> lowest_bit_ & (slots_.size() - 1); }

  // Takes the slot; or, when it is taken, has responder unit `unit` wait for it: false.
  bool take(std::uint64_t number, int unit, Picos now) {
    Slot& slot = slots_[number];
    if (!slot.taken) {
      slot.taken = true;
      slot.held -= now;
      return true;
    }
    (slot.first == kNobody ? slot.first : next_[static_cast<std::size_t>(slot.last)]) = unit;
    slot.last = unit;
    next_[static_cast<std::size_t>(unit)] = kNobody;
    return false;
  }
  // Frees the slot, or gives it to the unit that has waited longest: its number, else kNobody.
  static constexpr int kNobody = -1;
  int give_up(std::uint64_t number, Picos now) {
    Slot& slot = slots_[number];
    const int unit = slot.first;
    if (unit == kNobody) {
      slot.taken = false;
      slot.held += now;
    } else {
      slot.first = next_[static_cast<std::size_t>(unit)];
    }
    return unit;
  }

  // How long each slot has been held so far.
  std::vector<Picos> times_held(Picos now) const {
    std::vector<Picos> times;
    for (const Slot& slot : slots_) times.push_back(slot.taken ? slot.held + now : slot.held);
    return times;
  }

 private:
  struct Slot {
    bool taken = false;
    int first = kNobody;  // units that wait, linked through next_
    int last = kNobody;
    Picos held{0};  // so far; while it is taken less the present
  };

  int lowest_bit_;
  std::vector<Slot> slots_;
  std::vector<int> next_;  // the next unit in the line, by unit: each waits for one slot at most
};

}  // namespace verbscope::sim
