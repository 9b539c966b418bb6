// Priority flow control (IEEE 802.1Qbb): a sender with more than XOFF bytes of a priority in the buffer pauses that
// priority until it has less than XON. The rest of the buffer is headroom for packets on their way; a packet without
// room is dropped.
#include "nic_sim/net/discipline.hpp"

namespace verbscope::sim {
namespace {

class Pfc final : public Discipline {
 public:
  explicit Pfc(const BufferLimits& limits) : limits_(limits) {}

  bool admits(std::uint64_t used, std::uint64_t, std::uint64_t bytes) const override {
    return used + bytes <= limits_.size;
  }
  bool pauses(std::uint64_t held, bool paused) const override { return held > (paused ? limits_.xon : limits_.xoff); }

 private:
  BufferLimits limits_;
};

}  // namespace

std::unique_ptr<Discipline> make_pfc(const BufferLimits& limits) {
  return std::make_unique<Pfc>(limits);
}

}  // namespace verbscope::sim
