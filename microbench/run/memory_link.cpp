#include "microbench/run/memory_link.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/terminal.hpp"
#include "microbench/run/console.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr Picos kSimTick = 5us;           // virtual: how often the nodes are looked at
constexpr Picos kSimTickByCount = 100ns;  // where --iters end the window, and the counters must stop with it
constexpr Picos kSimQuiet = 100us;        // virtual: when nothing has arrived for so long, what is missing is lost

// A run that is longer tells what it takes here, when that is worth telling, in seconds: after the first connections,
// the stretch of it that is measured.
constexpr Picos kLongRun = 20ms;
constexpr Picos kStretchBegin = 500us;
constexpr Picos kStretchEnd = 1ms;
constexpr double kWorthTelling = 5;

std::vector<int> first_cores(std::size_t count) {
  std::vector<int> cores(count);
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

}  // namespace

void MemoryLink::connect() {
  slow_.does(fmt::format("connecting the QPs of {} machines", nodes_.size()));
  std::vector<Json> endpoints;
  for (const NodeRun& node : nodes_) endpoints.push_back(node.endpoints());
  for (NodeRun& node : nodes_) node.connect(endpoints);
}

// Tells how long a long run will take here, from a stretch of it.
void MemoryLink::foretell() {
  const Picos asked = schedule_.warmup + schedule_.duration;
  if (schedule_.threads_end_it || schedule_.forever || asked < kLongRun) return;
  cluster_.at(kStretchBegin, [this, asked] {
    cluster_.at(kStretchEnd, [asked, began = TscClock::now()] {
      const double slower = to_seconds(TscClock::now() - began) / to_seconds(kStretchEnd - kStretchBegin);
      const double left_s = slower * to_seconds(asked - kStretchEnd);
      if (left_s < kWorthTelling) return;
      print_error(
          fmt::format("{:g} s of simulated time will take about {} here, {:.0f} times as long", to_seconds(asked),
                      left_s < 120 ? fmt::format("{:.0f} s", left_s) : fmt::format("{:.0f} min", left_s / 60), slower));
    });
  });
}

void MemoryLink::start() {
  foretell();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    NodeThreads& threads = nodes_[n].threads();
    const RunControl& control = n == 0 ? server_ : clients_;
    for (std::size_t t = 0; t < threads.size(); ++t) {
      cluster_.add_thread(static_cast<int>(n), static_cast<int>(t), [&threads, &control, t](SimNode& sim_node) {
        threads.tally(t).started = sim_node.now();
        threads.workload(t).run(sim_node, control, threads.tally(t));
        threads.tally(t).tell_ended();
      });
    }
  }
}

void MemoryLink::await(Step step, std::function<void()> then) {
  slow_.does(fmt::format("simulating {}, at {:.4g} ms of virtual time",
                         step == Step::warm_up ? "the warm-up"
                         : step < Step::end    ? "the measurement"
                                               : "what is outstanding",
                         1e3 * to_seconds(cluster_.now())));
  switch (step) {
    case Step::warm_up:
      if (schedule_.warmup == Picos(0)) return then();
      return cluster_.at(schedule_.warmup, std::move(then));
    case Step::first_half:
      return appoint(begin_ + steadiness_.duration() / 2, std::move(then));
    case Step::second_half:
      if (schedule_.threads_end_it) return look_later(step, std::move(then));
      return appoint(begin_ + steadiness_.duration(), std::move(then));
    case Step::open:
    case Step::halve:
    case Step::close:
      moved_at_ = cluster_.now();
      return look_later(step, std::move(then));
    case Step::end:
      moved_at_ = cluster_.now();
      return look(step, std::move(then));
    case Step::drain:
      return look(step, std::move(then));
  }
}

// Calls `then` at `when`, or at once when that is over: threads may have been late to note what came before.
void MemoryLink::appoint(Picos when, std::function<void()> then) {
  if (when <= cluster_.now()) return then();
  cluster_.at(when, std::move(then));
}

void MemoryLink::begin_window() {
  begin_ = cluster_.now();
  steadiness_.begin(begin_);
  window_.begin();
}

bool MemoryLink::goes_on() {
  if (!failure_.empty()) return false;
  WindowRates rates;
  for (const NodeRun& node : nodes_) {
    if (node.counted()) rates += node.threads().window_rates();
  }
  if (schedule_.forever) {
    print_text(stdout, nodes_.front().window_line(rates, kSimulatedLabel));
    for (NodeRun& node : nodes_) node.threads().forget_windows();
    return true;
  }
  const std::optional<double> counted = counted_ ? std::optional(window_.counted_mops(*counted_)) : std::nullopt;
  if (!steadiness_.goes_on(rates, counted, window_.translations_settled(), cluster_.now())) return false;
  for (NodeRun& node : nodes_) node.threads().forget_windows();
  return true;
}

void MemoryLink::look(Step step, std::function<void()> then) {
  if (over(step)) return then();
  look_later(step, std::move(then));
}

void MemoryLink::look_later(Step step, std::function<void()> then) {
  const bool by_count = schedule_.iters && step == Step::second_half;
  cluster_.at(cluster_.now() + (by_count ? kSimTickByCount : kSimTick),
              [this, step, then = std::move(then)] { look(step, then); });
}

bool MemoryLink::over(Step step) {
  if (step >= Step::end && steadiness_.gave_up()) return true;  // what is posted may take longer than the point may
  if (step == Step::end) return failed() || active_ended() || stalled(schedule_.stuck);
  if (step == Step::drain) return failed() || everything_arrived() || stalled(kSimQuiet);
  const Phase phase = step == Step::open ? Phase::measure : step == Step::halve ? Phase::halved : Phase::closed;
  if (windows_noted(phase) || failed()) return true;
  if (stalled(schedule_.stuck) || (!schedule_.threads_end_it && steadiness_.late(cluster_.now())))
    steadiness_.give_up();
  return steadiness_.gave_up();
}

// Whether the threads whose windows make the rate have all noted the turn to `phase`.
bool MemoryLink::windows_noted(Phase phase) const {
  return std::ranges::all_of(
      nodes_, [phase](const NodeRun& node) { return !node.counted() || node.threads().windows_noted(phase); });
}

bool MemoryLink::active_ended() const {
  return std::ranges::all_of(nodes_, [](const NodeRun& node) { return node.threads().active_ended(); });
}

bool MemoryLink::everything_arrived() const {
  std::uint64_t sent = 0, received = 0;
  for (const NodeRun& node : nodes_) received += node.threads().received();
  for (std::size_t c = 1; c < nodes_.size(); ++c) {
    sent += nodes_.front().threads().sent_to(static_cast<std::uint32_t>(c - 1)) + nodes_[c].threads().sent_to(0);
  }
  return received >= sent;
}

bool MemoryLink::failed() {
  for (const NodeRun& node : nodes_) {
    if (failure_.empty()) failure_ = node.failure();
  }
  return !failure_.empty();
}

// Whether no operation has completed for longer than `limit`.
bool MemoryLink::stalled(Picos limit) {
  std::uint64_t completed = 0;
  for (const NodeRun& node : nodes_) completed += node.threads().completed();
  if (completed != seen_) {
    seen_ = completed;
    moved_at_ = cluster_.now();
  }
  return cluster_.now() - moved_at_ > limit;
}

PointReports MemoryLink::collect(std::string& failure) {
  window_.close();
  // Where every thread has failed nobody has looked since.
  if (failure.empty() && failed()) failure = failure_;
  if (failure.empty()) failure = steadiness_.failure(nodes_.front().why_missing() + window_.disturbances());
  const auto report = [&](std::size_t node, std::uint64_t expected) {
    return nodes_[node].report(window_.use(node), expected, first_cores(nodes_[node].threads().size()), failure);
  };
  std::uint64_t sent_in = 0;
  for (std::size_t c = 1; c < nodes_.size(); ++c) sent_in += nodes_[c].threads().sent_to(0);
  PointReports reports{.own = report(0, sent_in), .clients = std::vector<NodeReport>()};
  if (!schedule_.threads_end_it) reports.own.steadiness = steadiness_.report();
  for (std::size_t c = 1; c < nodes_.size(); ++c) {
    reports.clients->push_back(report(c, nodes_.front().threads().sent_to(static_cast<std::uint32_t>(c - 1))));
  }
  return reports;
}

}  // namespace verbscope
