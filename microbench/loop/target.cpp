#include "microbench/loop/target.hpp"

#include <algorithm>

#include "microbench/bench/workload.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/receiver.hpp"

namespace verbscope {

namespace {

class Target final : public WorkloadOn<Target> {
 public:
  explicit Target(const ThreadSetup& setup)
      : region_(setup.region.bytes),
        stride_(payload_stride(setup.operation.payload)),
        checker_(setup.operation),
        checks_(setup.operation.validate && setup.operation.verb == Verb::write && setup.thread == 0) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    wait_for_quit(node, control);
    if (checks_) check();
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t checked() const override { return checked_; }
  std::uint64_t wrong() const override { return wrong_; }

 private:
  void check() {
    for (std::uint64_t place = 0; place + stride_ <= region_.size(); place += stride_) {
      const auto found = checker_.lines(region_.subspan(place, stride_));
      if (found == PayloadChecker::Lines::wrong) ++wrong_;
      if (found != PayloadChecker::Lines::untouched) ++checked_;
    }
    if (checked_ == 0) wrong_ = 1;  // nobody wrote anything
  }

  std::span<std::byte> region_;
  std::uint64_t stride_;
  PayloadChecker checker_;
  bool checks_;
  std::uint64_t checked_ = 0;
  std::uint64_t wrong_ = 0;
};

// A target that takes the immediates of the WRITEs, and then looks at its memory.
class ImmediateTarget final : public WorkloadOn<ImmediateTarget> {
 public:
  explicit ImmediateTarget(const ThreadSetup& setup) : receiver_(make_immediate_receiver(setup)), memory_(setup) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    receiver_->run(node, control, tally);
    memory_.step(node, control, tally);
  }

  bool active() const override { return false; }
  std::uint64_t received() const override { return receiver_->received(); }
  std::uint64_t checked() const override { return memory_.checked(); }
  std::uint64_t wrong() const override { return memory_.wrong(); }
  std::string memory() const override { return receiver_->memory(); }
  bool relaxed() const override { return receiver_->relaxed(); }

 private:
  std::unique_ptr<Workload> receiver_;
  Target memory_;
};

}  // namespace

std::uint64_t target_bytes(const Operation& op, std::uint64_t wanted) {
  return std::max(wanted, payload_stride(op.payload));
}

void fill_target(const Operation& op, std::span<std::byte> region) {
  const std::uint64_t stride = payload_stride(op.payload);
  const std::uint32_t slots = payload_slots(op.payload);
  for (std::uint64_t place = 0; (place + 1) * stride <= region.size(); ++place) {
    fill_payload(op.seed, static_cast<std::uint32_t>(place % slots), region.subspan(place * stride, op.payload));
  }
}

std::unique_ptr<Workload> make_target(const ThreadSetup& setup) {
  if (setup.operation.immediate) return std::make_unique<ImmediateTarget>(setup);
  return std::make_unique<Target>(setup);
}

}  // namespace verbscope
