#include "counters/driver_source.hpp"

#include "common/clock.hpp"
#include "common/error.hpp"
#include "drivers_patch/counter_report.hpp"
#include "drivers_patch/objects.hpp"

namespace verbscope {

void DriverSource::start() {
  if (!driver::counting()) fail("the device was opened uncounted");
}

void DriverSource::read(Moment moment) {
  const Picos before = TscClock::now();
  const driver::Sums sums = driver::summarize_process().whole;
  const Picos after = TscClock::now();
  readings_[static_cast<std::size_t>(moment)] = {before + (after - before) / 2, sums};
}

CounterReport DriverSource::report(double /*ops_per_s*/) {
  const Reading &begin = at(Moment::window_begin), &end = at(Moment::window_end);
  return driver::counter_report(driver::summarize_process().wire, driver::difference(end.sums, begin.sums),
                                to_seconds(end.time - begin.time));
}

}  // namespace verbscope
