#include "microbench/run/phase_machine.hpp"

namespace verbscope {

void PhaseMachine::run() {
  link_.connect();
  link_.gather();
  link_.start();
  await(Step::warm_up);
}

void PhaseMachine::await(Step step) {
  link_.await(step, [this, step] { over(step); });
}

void PhaseMachine::over(Step step) {
  // Receivers see their window's end in traffic that still flows, so those that send to them are stopped afterwards.
  const bool receives = own_.counted() && !own_.threads().sends();
  switch (step) {
    case Step::warm_up:
      link_.begin_window();
      link_.turn(Phase::measure);
      link_.turn_peers(Phase::measure);
      return await(Step::open);
    case Step::open:
      return await(Step::measure);
    case Step::measure:
      link_.end_window();
      link_.turn(Phase::stop);
      if (!receives) link_.turn_peers(Phase::stop);
      return await(Step::close);
    case Step::close:
      if (receives) link_.turn_peers(Phase::stop);
      return await(Step::end);
    case Step::end:
      return await(Step::drain);
    case Step::drain:
      return link_.end_threads();
  }
}

}  // namespace verbscope
