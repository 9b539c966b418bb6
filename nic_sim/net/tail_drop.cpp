// No flow control: a queue may use alpha times the free bytes of the buffer; further packets are dropped (Choudhury and
// Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6(2), 1998).
#include "nic_sim/net/discipline.hpp"

namespace verbscope::sim {
namespace {

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

}  // namespace

std::unique_ptr<Discipline> make_tail_drop(const BufferLimits& limits) {
  return std::make_unique<TailDrop>(limits);
}

}  // namespace verbscope::sim
