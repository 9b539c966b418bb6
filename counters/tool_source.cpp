#include "counters/tool_source.hpp"

#include <algorithm>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBackgroundIntervals = 2;  // whole ones
constexpr std::size_t kWindowIntervals = 8;      // wanted in a window, as many as there is room for
constexpr auto kPatience = 2000ms;               // a tool has so long to put the CPU's counters back

// A multiple of the step: of the window and of the patience an eighth at most, where there is room for it.
Tool make_tool(const std::string& name, std::uint32_t step_ms, const std::string& rows, Picos window, Picos patience) {
  const double most_ms = to_seconds(std::min(window, patience)) * 1000 / kWindowIntervals;
  const std::uint32_t ms = std::max(1u, static_cast<std::uint32_t>(most_ms / step_ms)) * step_ms;
  return {name, {fmt::format("{}.{:03}", ms / 1000, ms % 1000), "-csv", rows}, ms, patience / 2};
}

}  // namespace

Tool pcm_pcie_tool(Picos window, Picos patience) {
  // 84 ms divide evenly among the groups of events of every generation: 12, 14, 2 or 3.
  return make_tool("pcm-pcie", 84, "-e", window, patience);
}

Tool pcm_iio_tool(Picos window, Picos patience) {
  // About 40 events take turns.
  return make_tool("pcm-iio", 200, "-root-port", window, patience);
}

ToolSource::ToolSource(Tool tool, std::unique_ptr<ToolFormat> format)
    : tool_(std::move(tool)), format_(std::move(format)), log_(*format_) {}

ToolSource::~ToolSource() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  to_end_.ring();
}

void ToolSource::start() {
  std::vector<std::string> arguments{tool_.name};
  arguments.insert(arguments.end(), tool_.arguments.begin(), tool_.arguments.end());
  process_.emplace(arguments);
  started_ = TscClock::now();
  thread_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
}

// Lines carry the time at which they came. Ends with the tool, or ends it.
void ToolSource::follow(const std::stop_token& stop) {
  std::string failure;
  try {
    while (!stop.stop_requested() && process_->running()) {
      const std::string_view piece = process_->read(to_end_.fd(), 1000ms);
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

bool ToolSource::background_done() {
  const std::lock_guard lock(mutex_);
  check_alive();
  // The beginning of the first interval is not known.
  const std::vector<ToolInterval> seen = log_.whole_intervals();
  if (seen.size() > kBackgroundIntervals) return true;
  const Picos limit = tool_.start_limit + std::chrono::milliseconds(tool_.interval_ms) * (2 + kBackgroundIntervals);
  if (TscClock::now() - started_ > limit) {
    fail("{} printed {} whole intervals of {} ms in {:.1f} s", tool_.name, seen.size(), tool_.interval_ms,
         to_seconds(limit));
  }
  return false;
}

void ToolSource::read(Moment moment) {
  marks_[static_cast<std::size_t>(moment)] = TscClock::now();
}

// Sums the whole intervals, begun and ended between the two moments. An interval begins when the one before has been
// printed; as lines may come late but never early, it is not taken to be shorter than was asked for.
std::vector<ToolInterval> ToolSource::between(Moment begin, Moment end) const {
  std::vector<ToolInterval> inside;
  const std::vector<ToolInterval> whole = log_.whole_intervals();
  for (std::size_t i = 1; i < whole.size(); ++i) {
    const Picos began = std::min(whole[i - 1].last_line, whole[i].end - std::chrono::milliseconds(tool_.interval_ms));
    if (began >= at(begin) && whole[i].end <= at(end)) inside.push_back(whole[i]);
  }
  return inside;
}

ToolSource::Part ToolSource::part(Moment begin, Moment end) const {
  const std::vector<ToolInterval> intervals = between(begin, end);
  Part part{intervals.size(), {}};
  const double seconds = static_cast<double>(intervals.size()) * format_->counted_s(tool_.interval_ms);
  for (const ToolInterval& interval : intervals) {
    for (const auto& [name, sum] : interval.sums) part.per_s[name] += static_cast<double>(sum) / seconds;
  }
  return part;
}

CounterReport ToolSource::report(double) {
  thread_.request_stop();
  to_end_.ring();
  thread_.join();
  check_alive();
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
  CounterReport report = make_report(tool_.name, format_->blind(), counted, format_->rules());
  report.extra["intervals"] = window.intervals;
  report.extra["intervals_damaged"] = log_.damaged();
  report.extra["interval_s"] = tool_.interval_ms / 1000.0;
  report.extra["scaling"] = window_s / (static_cast<double>(window.intervals) * tool_.interval_ms / 1000.0);
  report.extra["tool_cpu_share"] = process_->cpu_s() / to_seconds(TscClock::now() - started_);
  return report;
}

}  // namespace verbscope
