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

void PhaseMachine::turn(Phase phase) {
  link_.turn(phase);
  link_.turn_peers(phase);
}

void PhaseMachine::measure() {
  link_.begin_window();
  turn(Phase::measure);
  await(Step::open);
}

void PhaseMachine::stop() {
  turn(Phase::stop);
  await(Step::end);
}

void PhaseMachine::over(Step step) {
  if (link_.gave_up() && step < Step::end) {
    if (step < Step::close) link_.end_window();
    return stop();
  }
  switch (step) {
    case Step::warm_up:
      return measure();
    case Step::open:
      return await(own_.threads_end_window() ? Step::second_half : Step::first_half);
    case Step::first_half:
      turn(Phase::halved);
      return await(Step::halve);
    case Step::halve:
      return await(Step::second_half);
    case Step::second_half:
      link_.end_window();
      turn(Phase::closed);
      return await(Step::close);
    case Step::close:
      return link_.goes_on() ? measure() : stop();
    case Step::end:
      return await(Step::drain);
    case Step::drain:
      return link_.end_threads();
  }
}

}  // namespace verbscope
