#include "nic_sim/net/discipline.hpp"

#include "common/error.hpp"

namespace verbscope::sim {
namespace {

// No flow control: a queue may use alpha times the free bytes of the buffer; further packets are dropped (Choudhury and
// Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6(2), 1998).
class TailDrop final : public Discipline {
 public:
  explicit TailDrop(const BufferLimits& limits) : limits_(limits) {}

  bool admits(std::uint64_t used, std::uint64_t queue, std::uint64_t bytes) const override {
    if (used + bytes > limits_.size) return false;
    return static_cast<double>(queue) < limits_.alpha * static_cast<double>(limits_.size - used);
  }
  bool pauses(std::uint64_t, bool) const override { return false; }

 private:
  BufferLimits limits_;
};

// Priority flow control (IEEE 802.1Qbb): a sender with more than XOFF bytes of a priority in the buffer pauses that
// priority until it has less than XON. The rest of the buffer is headroom for packets on their way; a packet without
// room is dropped.
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

std::unique_ptr<Discipline> make_discipline(FlowControl kind, const BufferLimits& limits) {
  switch (kind) {
    case FlowControl::tail_drop:
      return std::make_unique<TailDrop>(limits);
    case FlowControl::pfc:
      return std::make_unique<Pfc>(limits);
    case FlowControl::credits:
      break;
  }
  fail("flow control {} exists only on InfiniBand; an Ethernet switch has none or pfc",
       row_of(kFlowControls, kind).name);
}

}  // namespace verbscope::sim
