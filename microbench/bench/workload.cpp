#include "microbench/bench/workload.hpp"

namespace verbscope {

namespace {

class Idle final : public WorkloadOn<Idle> {
 public:
  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    wait_for_quit(node, control);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
};

}  // namespace

std::unique_ptr<Workload> make_idle() {
  return std::make_unique<Idle>();
}

}  // namespace verbscope
