#include "microbench/run/fabric.hpp"

#include <exception>

#include "microbench/run/rate_check.hpp"

namespace verbscope {

namespace {

// Waits for the first completions of an interval, its halves and its end. Returns false if the point ran out of time.
bool pass_interval(const NodeRun& own, Link& link) {
  if (!link.wait(Step::open)) return false;
  if (!own.threads_end_interval()) {
    if (!link.wait(Step::first_half)) return false;
    link.turn(Phase::halved);
    if (!link.wait(Step::halve)) return false;
  }
  return link.wait(Step::second_half);
}

// Returns true if another interval follows.
bool measure_interval(const NodeRun& own, Link& link) {
  link.begin_interval();
  link.turn(Phase::measure);
  const bool passed = pass_interval(own, link);
  link.end_interval();
  if (!passed) return false;
  link.turn(Phase::closed);
  return link.wait(Step::close) && link.goes_on();
}

}  // namespace

void run_phases(const NodeRun& own, Link& link) {
  link.connect();
  link.gather();
  link.start();
  bool more = link.wait(Step::warm_up);
  while (more) more = measure_interval(own, link);
  link.turn(Phase::stop);
  link.wait(Step::end);
  link.wait(Step::drain);
  link.end_threads();
}

Outcome Fabric::run() {
  Outcome outcome;
  try {
    const Plan plan = make_plan();
    outcome.config = plan_json(plan);
    Link& link = open(plan, outcome);
    link.run([this, &link] { run_phases(own_node(), link); });
    const PointReports reports = make_result(link.collect(outcome.failure), plan, outcome.failure);
    outcome.result = result_json(reports);
    complete(plan, reports.own, outcome);
  } catch (const std::exception& error) {
    send_failure(error.what());
    throw;
  }
  if (own_node().is_server()) benchmark_.finish(outcome);
  if (has_model_hardware()) check_against_bounds(benchmark_.bounded_rate(), outcome);
  return outcome;
}

}  // namespace verbscope
