#include "counters/collector.hpp"

#include <algorithm>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr Picos kMinBackground = 100ms;  // shortest time for measuring the background
constexpr auto kPollPeriod = 1ms;        // for background_done()

}  // namespace

Collector::Collector(std::string node, std::vector<std::unique_ptr<CounterSource>> sources, CountersNeeded needed)
    : node_(std::move(node)), needed_(needed) {
  for (auto& source : sources) entries_.push_back({std::move(source), "", 0});
}

// Calls `action` for every source that still counts. A source for which it throws stops counting.
template <class Action>
void Collector::each(Action&& action) {
  for (Entry& entry : entries_) {
    if (!entry.missing.empty()) continue;
    try {
      action(entry);
    } catch (const Error& error) {
      entry.missing = error.what();
    }
  }
}

std::string Collector::failure() const {
  for (const Entry& entry : entries_) {
    if (needed_ == CountersNeeded::all && !entry.missing.empty()) {
      return fmt::format("{}: counters of {} are required: {}", node_, entry.source->name(), entry.missing);
    }
  }
  return "";
}

void Collector::measure_background() {
  each([](Entry& entry) { entry.source->start(); });
  each([](Entry& entry) { entry.source->read(Moment::background_begin); });
  const Picos begin = TscClock::now();
  const auto counting = [this] {
    return std::ranges::any_of(entries_, [](const Entry& e) { return e.missing.empty(); });
  };
  for (bool done = false; !done && counting();) {
    done = TscClock::now() - begin >= kMinBackground;
    each([&done](Entry& entry) { done = entry.source->background_done() && done; });
    if (!done) std::this_thread::sleep_for(kPollPeriod);
  }
  each([](Entry& entry) { entry.source->read(Moment::background_end); });
  if (const std::string line = failure(); !line.empty()) throw Error(line);
}

void Collector::attach(const std::vector<int>& threads) {
  each([&threads](Entry& entry) {
    entry.source->attach(threads);
    const Picos before = TscClock::now();
    entry.source->read(Moment::trial);
    entry.source->read(Moment::trial);
    entry.read_pair_ns = to_seconds(TscClock::now() - before) * 1e9;
  });
  if (const std::string line = failure(); !line.empty()) throw Error(line);
}

void Collector::begin_window() {
  each([](Entry& entry) { entry.source->read(Moment::window_begin); });
}

void Collector::end_window() {
  each([](Entry& entry) { entry.source->read(Moment::window_end); });
}

Collector::Collected Collector::collect(double ops_per_s) {
  Collected collected;
  for (Entry& entry : entries_) {
    CounterReport report;
    try {
      if (!entry.missing.empty()) throw Error(entry.missing);
      report = entry.source->report(ops_per_s);
      report.extra["read_pair_ns"] = entry.read_pair_ns;
    } catch (const Error& error) {
      entry.missing = error.what();
      report = missing_report(entry.source->name(), entry.missing);
    }
    report.node = node_;
    collected.reports.push_back(std::move(report));
  }
  collected.failure = failure();
  const bool none_counted = std::ranges::none_of(entries_, [](const Entry& entry) { return entry.missing.empty(); });
  if (needed_ == CountersNeeded::one && none_counted && !entries_.empty()) {
    collected.failure = fmt::format("{}: none of the requested counter sources counted: {}: {}", node_,
                                    entries_.front().source->name(), entries_.front().missing);
  }
  return collected;
}

}  // namespace verbscope
