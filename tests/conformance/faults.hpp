// The ways in which the memory that a request names can be wrong.
#pragma once

#include <ostream>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {

enum class Fault { unknown_key, other_pd, past_the_end, before_the_start, deregistered, no_right };

inline const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::unknown_key:
      return "UnknownKey";
    case Fault::other_pd:
      return "KeyOfAnotherPd";
    case Fault::past_the_end:
      return "PastTheEnd";
    case Fault::before_the_start:
      return "BeforeTheStart";
    case Fault::deregistered:
      return "DeregisteredKey";
    case Fault::no_right:
      return "RegionWithoutTheRight";
  }
  return "?";
}

inline std::ostream& operator<<(std::ostream& out, Fault fault) {
  return out << fault_name(fault);
}

struct Keys {
  std::uint32_t lkey, rkey;
};

// Keys with which nobody may reach `length` bytes at `place` of `side`'s memory; with Fault::no_right, nobody who needs
// the rights `missing`.
inline Keys wrong_keys(Side& side, Fault fault, std::size_t place, std::uint32_t length, int missing = 0) {
  constexpr std::uint32_t kRoom = 4096;
  const auto keys_of = [](const ibv_mr* mr) { return Keys{mr->lkey, mr->rkey}; };
  switch (fault) {
    case Fault::unknown_key:
      return {side.mr()->lkey ^ 0x5a5a00, side.mr()->rkey ^ 0x5a5a00};
    case Fault::other_pd:
      return keys_of(side.make_mr(place, kRoom, kAllAccess, side.make_pd()));
    case Fault::past_the_end:
      return keys_of(side.make_mr(place, length - 1, kAllAccess));
    case Fault::before_the_start:
      return keys_of(side.make_mr(place + 1, kRoom, kAllAccess));
    case Fault::deregistered: {
      ibv_mr* gone = side.make_mr(place, kRoom, kAllAccess);
      const Keys keys = keys_of(gone);
      EXPECT_EQ(side.destroy(gone), 0);
      return keys;
    }
    case Fault::no_right:
      break;
  }
  return keys_of(side.make_mr(place, kRoom, kAllAccess & ~missing));
}

}  // namespace verbscope::conformance
