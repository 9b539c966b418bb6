#include "counters/tool_source.hpp"

#include <algorithm>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBackgroundIntervals = 2;  // complete ones
constexpr std::size_t kWindowIntervals = 8;      // minimum wanted in a window, if they fit
constexpr auto kPatience = 2000ms;               // time for a tool to restore the CPU's counters
constexpr std::uint32_t kSecond = 1000;          // ms
// Accepted ratio of the measured period between blocks to the requested interval. Tools round the interval down to a
// length that their events share evenly, and work between the events prolongs it.
constexpr double kMinPeriod = 0.5, kMaxPeriod = 1.5;
// Releases of pcm-pcie before 202302 sleep for twice the time that they count.
constexpr double kMinDoubled = 1.8, kMaxDoubled = 2.6;
// A busy machine can deliver a few blocks at once, but fewer than this.
constexpr std::size_t kMaxBurstBlocks = 20;

std::string seconds_text(std::uint32_t ms) {
  return fmt::format("{}.{:03}", ms / kSecond, ms % kSecond);
}

// The interval is a multiple of the step, and at most an eighth of the window and of the patience, if a multiple is
// that short.
Tool make_tool(const std::string& name, std::uint32_t step_ms, const std::string& rows, Picos window, Picos patience) {
  const double max_ms = to_seconds(std::min(window, patience)) * 1000 / kWindowIntervals;
  std::uint32_t ms = std::max(1u, static_cast<std::uint32_t>(max_ms / step_ms)) * step_ms;
  // Older releases truncate the interval to whole seconds.
  if (ms > kSecond) ms = ms / kSecond * kSecond;
  return {name, {seconds_text(ms), "-csv", rows}, ms, patience / 2, window};
}

}  // namespace

Tool pcm_pcie_tool(Picos window, Picos patience) {
  // 84 ms can be divided evenly among the event groups of every generation: 12, 14, 2 or 3.
  return make_tool("pcm-pcie", 84, "-e", window, patience);
}

Tool pcm_iio_tool(Picos window, Picos patience) {
  // About 40 events take turns.
  return make_tool("pcm-iio", 200, "-root-port", window, patience);
}

Tool neo_host_tool(const std::string& address, Picos patience) {
  std::vector<std::string> arguments{"--mode=shell", "--get-analysis", "--run-loop"};
  if (!address.empty()) arguments.push_back("--dev-uid=" + address);
  return {.name = "get_device_performance_counters.py",
          .arguments = std::move(arguments),
          .interval_ms = kSecond,
          .start_limit = patience / 2,
          .takes_interval = false};
}

ToolSource::ToolSource(Tool tool, std::unique_ptr<ToolFormat> format, std::string name)
    : tool_(std::move(tool)), name_(std::move(name)), format_(std::move(format)), log_(*format_) {}

ToolSource::~ToolSource() {
  if (thread_.joinable()) stop();
}

void ToolSource::stop() {
  thread_.request_stop();
  wake_.signal();
  thread_.join();
}

void ToolSource::start() {
  std::vector<std::string> arguments{tool_.name};
  arguments.insert(arguments.end(), tool_.arguments.begin(), tool_.arguments.end());
  process_.emplace(arguments);
  failure_.clear();
  wake_.clear();
  started_ = TscClock::now();
  thread_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
}

// Feeds the tool's output to the log, with times of arrival, until the tool ends. If asked to stop, ends the tool.
void ToolSource::follow(const std::stop_token& stop) {
  std::string failure;
  try {
    while (!stop.stop_requested() && process_->running()) {
      const std::string_view piece = process_->read(wake_.fd(), 1000ms);
      const Picos now = TscClock::now();
      const std::lock_guard lock(mutex_);
      log_.feed(piece, now);
    }
    if (!process_->running()) failure = fmt::format("{} ended with {}", tool_.name, process_->end_text());
  } catch (const Error& error) {
    failure = error.what();
  }
  try {
    process_->end(kPatience);
  } catch (const Error& error) {
    if (failure.empty()) failure = error.what();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
}

void ToolSource::check_alive() const {
  if (!failure_.empty()) throw Error(failure_);
}

bool ToolSource::background_measured() const {
  const std::lock_guard lock(mutex_);
  check_alive();
  // The start of the first interval is unknown.
  const std::vector<ToolInterval> seen = log_.whole_intervals();
  if (seen.size() > kBackgroundIntervals || (in_whole_seconds_ && seen.size() > 1)) return true;
  // With whole seconds, older releases take twice the interval.
  const Picos limit = tool_.start_limit +
                      std::chrono::milliseconds(tool_.interval_ms) * (in_whole_seconds_ ? 4 : 2 + kBackgroundIntervals);
  if (TscClock::now() - started_ > limit) {
    fail("{} printed {} whole intervals of {} ms in {:.1f} s", tool_.name, seen.size(), tool_.interval_ms,
         to_seconds(limit));
  }
  return false;
}

bool ToolSource::background_done() {
  if (!background_measured()) return false;
  if (!tool_.takes_interval || timing() != Timing::unknown || in_whole_seconds_) return true;
  const Picos burst_limit = tool_.start_limit + std::chrono::milliseconds(tool_.interval_ms) * kMaxBurstBlocks;
  if (blocks() < kMaxBurstBlocks && TscClock::now() - started_ < burst_limit) return false;
  // The tool did not keep a fraction of a second. Only whole seconds remain, for which older releases take twice the
  // time.
  const Picos min_window = std::chrono::seconds(4);
  if (tool_.window > Picos(0) && tool_.window < min_window) {
    fail(
        "{}; older releases need whole seconds, and then no interval fits into the measurement: use --duration {} s or "
        "more",
        timing_text(), to_seconds(min_window) + 1);
  }
  stop();
  log_.clear();
  in_whole_seconds_ = true;
  tool_.interval_ms = kSecond;
  tool_.arguments[0] = seconds_text(kSecond);
  start();
  marks_[static_cast<std::size_t>(Moment::background_begin)] = started_;
  return false;
}

ToolSource::Timing ToolSource::timing() const {
  const std::lock_guard lock(mutex_);
  const auto period = log_.period();
  if (!period) return Timing::unknown;
  const double asked_s = tool_.interval_ms / 1000.0;
  const double mean = to_seconds(period->mean) / asked_s;
  // A busy machine can make an interval longer, never shorter.
  const double shortest = std::min(mean, to_seconds(period->shortest) / asked_s);
  if (mean < kMinPeriod) return Timing::unknown;
  if (shortest <= kMaxPeriod) return Timing::as_requested;
  const bool whole = tool_.interval_ms % kSecond == 0;
  return whole && mean >= kMinDoubled && shortest <= kMaxDoubled ? Timing::doubled : Timing::unknown;
}

std::size_t ToolSource::blocks() const {
  const std::lock_guard lock(mutex_);
  return log_.blocks();
}

std::string ToolSource::timing_text() const {
  const std::lock_guard lock(mutex_);
  const auto period = log_.period();
  return fmt::format("{} does not keep its interval: requested {} s, measured {:.3f} s", tool_.name, tool_.arguments[0],
                     period ? to_seconds(period->mean) : 0);
}

void ToolSource::read(Moment moment) {
  marks_[static_cast<std::size_t>(moment)] = TscClock::now();
}

// The complete intervals that begin and end between the two moments. An interval begins when the previous one was
// printed. Lines can arrive late but never early, so an interval is at least as long as requested.
std::vector<ToolInterval> ToolSource::between(Moment begin, Moment end) const {
  std::vector<ToolInterval> inside;
  const std::vector<ToolInterval> whole = log_.whole_intervals();
  for (std::size_t i = 1; i < whole.size(); ++i) {
    const Picos asked = tool_.takes_interval ? std::chrono::milliseconds(tool_.interval_ms) : Picos(0);
    const Picos began = std::min(whole[i - 1].last_line, whole[i].end - asked);
    if (began >= at(begin) && whole[i].end <= at(end)) inside.push_back(whole[i]);
  }
  return inside;
}

ToolSource::Part ToolSource::part(Moment begin, Moment end) const {
  const std::vector<ToolInterval> intervals = between(begin, end);
  Part part{intervals.size(), {}};
  const double seconds =
      static_cast<double>(intervals.size()) * format_->counted_s(tool_.interval_ms, timing() == Timing::doubled);
  for (const ToolInterval& interval : intervals) {
    for (const auto& [name, sum] : interval.sums) part.per_s[name] += static_cast<double>(sum) / seconds;
  }
  return part;
}

CounterReport ToolSource::report(double) {
  stop();
  check_alive();
  if (tool_.takes_interval && timing() == Timing::unknown && log_.blocks() > 1) throw Error(timing_text());
  const double window_s = to_seconds(at(Moment::window_end) - at(Moment::window_begin));
  const Part window = part(Moment::window_begin, Moment::window_end);
  const Part background = part(Moment::background_begin, Moment::background_end);
  if (window.intervals == 0) {
    fail("{} finished no whole interval of {} ms in the window of {:.3f} s", tool_.name, tool_.interval_ms, window_s);
  }
  Counted counted{.window_s = window_s,
                  .raw = {},
                  .background_s = static_cast<double>(background.intervals) * tool_.interval_ms / 1000.0,
                  .background_per_s = background.per_s};
  for (const auto& [name, per_s] : window.per_s) counted.raw[name] = per_s * window_s;
  CounterReport report = make_report(name(), format_->blind(), counted, format_->rules());
  report.extra["intervals"] = window.intervals;
  report.extra["intervals_damaged"] = log_.damaged();
  const double took_s = to_seconds(log_.period().value().mean);
  const double interval_s = tool_.takes_interval ? tool_.interval_ms / 1000.0 : took_s;
  report.extra["interval_s"] = interval_s;
  report.extra["interval_took_s"] = took_s;
  report.extra["scaling"] = window_s / (static_cast<double>(window.intervals) * interval_s);
  report.extra.update(format_->extra());
  report.extra["tool_cpu_share"] = process_->cpu_s() / to_seconds(TscClock::now() - started_);
  return report;
}

}  // namespace verbscope
