#include "microbench/run/sim_link.hpp"

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

constexpr auto kFirstNotice = 5s;  // real time
constexpr auto kNextNotice = 15s;

constexpr Picos kSimTick = 5us;           // virtual time between two checks of the nodes
constexpr Picos kSimTickByCount = 100ns;  // if --iters end the interval: the counters must stop with it
constexpr Picos kSimQuiet = 100us;        // virtual: messages that have not arrived after this time are lost

// A run that takes longer prints an estimate of its real time. The estimate comes from this stretch of virtual time,
// after the first connections.
constexpr Picos kLongRun = 20ms;
constexpr Picos kStretchBegin = 500us;
constexpr Picos kStretchEnd = 1ms;
constexpr double kWorthPrinting = 5;  // seconds

std::vector<int> first_cores(std::size_t count) {
  std::vector<int> cores(count);
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

std::vector<std::string> names_of(const std::deque<NodeRun>& nodes) {
  std::vector<std::string> names;
  for (const NodeRun& node : nodes) names.push_back(node.name());
  return names;
}

}  // namespace

SlowRunNotice::SlowRunNotice(std::string activity)
    : activity_(std::move(activity)), thread_([this](const std::stop_token& stop) { print_until(stop); }) {}

void SlowRunNotice::set(std::string activity) {
  const std::lock_guard lock(mutex_);
  activity_ = std::move(activity);
}

void SlowRunNotice::print_until(const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (auto next = begin + kFirstNotice; !woken_.wait_until(lock, stop, next, [] { return false; });
       next += kNextNotice) {
    if (stop.stop_requested()) return;
    print_error(fmt::format("after {} s: {}", std::chrono::duration_cast<std::chrono::seconds>(next - begin).count(),
                            activity_));
  }
}

SimLink::SimLink(SimCluster& cluster, std::deque<NodeRun>& nodes, const Schedule& schedule,
                 std::optional<OperationCount> counted, SlowRunNotice& notice)
    : cluster_(cluster),
      nodes_(nodes),
      schedule_(schedule),
      counted_(std::move(counted)),
      notice_(notice),
      interval_(cluster, names_of(nodes), [&nodes](std::size_t node) { return nodes[node].threads().armed(); }),
      steadiness_(schedule) {}

void SimLink::connect() {
  notice_.set(fmt::format("connecting the QPs of {} machines", nodes_.size()));
  std::vector<Json> endpoints;
  for (const NodeRun& node : nodes_) endpoints.push_back(node.endpoints());
  for (NodeRun& node : nodes_) node.connect(endpoints);
}

// Prints an estimate of the real time of a long run, from a short part of it.
void SimLink::announce_long_run() {
  const Picos asked = schedule_.warmup + schedule_.duration;
  if (schedule_.threads_end_it || schedule_.forever || asked < kLongRun) return;
  cluster_.at(kStretchBegin, [this, asked] {
    cluster_.at(kStretchEnd, [asked, began = TscClock::now()] {
      const double slower = to_seconds(TscClock::now() - began) / to_seconds(kStretchEnd - kStretchBegin);
      const double left_s = slower * to_seconds(asked - kStretchEnd);
      if (left_s < kWorthPrinting) return;
      print_error(fmt::format(
          "{:g} s of simulated time will take about {} of real time, {:.0f} times as long", to_seconds(asked),
          left_s < 120 ? fmt::format("{:.0f} s", left_s) : fmt::format("{:.0f} min", left_s / 60), slower));
    });
  });
}

void SimLink::start() {
  announce_long_run();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    NodeThreads& threads = nodes_[n].threads();
    const RunControl& control = n == 0 ? server_ : clients_;
    for (std::size_t t = 0; t < threads.size(); ++t) {
      cluster_.add_thread(static_cast<int>(n), static_cast<int>(t), [&threads, &control, t](SimNode& sim_node) {
        threads.tally(t).started = sim_node.now();
        threads.workload(t).run(sim_node, control, threads.tally(t));
        threads.tally(t).set_ended();
      });
    }
  }
}

bool SimLink::wait(Step step) {
  notice_.set(fmt::format("simulating {}, at {:.4g} ms of virtual time",
                          step == Step::warm_up ? "the warm-up"
                          : step < Step::end    ? "the measurement"
                                                : "outstanding operations",
                          1e3 * to_seconds(cluster_.now())));
  switch (step) {
    case Step::warm_up:
      if (schedule_.warmup > Picos(0)) cluster_.wait_until(schedule_.warmup);
      break;
    case Step::first_half:
      wait_until(begin_ + steadiness_.duration() / 2);
      break;
    case Step::second_half:
      if (schedule_.threads_end_it) {
        poll(step);
      } else {
        wait_until(begin_ + steadiness_.duration());
      }
      break;
    case Step::open:
    case Step::halve:
    case Step::close:
      moved_at_ = cluster_.now();
      poll(step);
      break;
    case Step::end:
      moved_at_ = cluster_.now();
      if (!over(step)) poll(step);
      break;
    case Step::drain:
      if (!over(step)) poll(step);
      break;
  }
  return !steadiness_.gave_up();
}

// Returns at once if `when` is past: threads may have noted the phase before it late.
void SimLink::wait_until(Picos when) {
  if (when > cluster_.now()) cluster_.wait_until(when);
}

// Waits for a tick of virtual time, and for further ones until `step` is over.
void SimLink::poll(Step step) {
  const bool by_count = schedule_.iters && step == Step::second_half;
  do {
    cluster_.wait_until(cluster_.now() + (by_count ? kSimTickByCount : kSimTick));
  } while (!over(step));
}

void SimLink::begin_interval() {
  begin_ = cluster_.now();
  steadiness_.begin(begin_);
  interval_.begin();
}

void SimLink::turn(Phase phase) {
  server_.phase = phase;
  clients_.phase = phase;
}

void SimLink::end_threads() {
  server_.quit = true;
  clients_.quit = true;
}

bool SimLink::goes_on() {
  if (!failure_.empty()) return false;
  IntervalRates rates;
  for (const NodeRun& node : nodes_) {
    if (node.counted()) rates += node.threads().interval_rates();
  }
  if (schedule_.forever) {
    print_text(stdout, nodes_.front().interval_line(rates, kSimulatedLabel));
    for (NodeRun& node : nodes_) node.threads().forget_intervals();
    return true;
  }
  const std::optional<double> counted = counted_ ? std::optional(interval_.counted_mops(*counted_)) : std::nullopt;
  if (!steadiness_.goes_on(rates, counted, interval_.translations_settled(), cluster_.now())) return false;
  for (NodeRun& node : nodes_) node.threads().forget_intervals();
  return true;
}

bool SimLink::over(Step step) {
  if (step >= Step::end && steadiness_.gave_up())
    return true;  // outstanding operations may take longer than the point may
  if (step == Step::end) return failed() || active_ended() || stalled(schedule_.stuck);
  if (step == Step::drain) return failed() || everything_arrived() || stalled(kSimQuiet);
  const Phase phase = step == Step::open ? Phase::measure : step == Step::halve ? Phase::halved : Phase::closed;
  if (intervals_noted(phase) || failed()) return true;
  if (stalled(schedule_.stuck) || (!schedule_.threads_end_it && steadiness_.late(cluster_.now())))
    steadiness_.give_up();
  return steadiness_.gave_up();
}

// True if all threads that make the rate have noted `phase`.
bool SimLink::intervals_noted(Phase phase) const {
  return std::ranges::all_of(
      nodes_, [phase](const NodeRun& node) { return !node.counted() || node.threads().intervals_noted(phase); });
}

bool SimLink::active_ended() const {
  return std::ranges::all_of(nodes_, [](const NodeRun& node) { return node.threads().active_ended(); });
}

bool SimLink::everything_arrived() const {
  std::uint64_t sent = 0, received = 0;
  for (const NodeRun& node : nodes_) received += node.threads().received();
  for (std::size_t c = 1; c < nodes_.size(); ++c) {
    sent += nodes_.front().threads().sent_to(static_cast<std::uint32_t>(c - 1)) + nodes_[c].threads().sent_to(0);
  }
  return received >= sent;
}

bool SimLink::failed() {
  for (const NodeRun& node : nodes_) {
    if (failure_.empty()) failure_ = node.failure();
  }
  return !failure_.empty();
}

// True if no operation has completed for longer than `limit`.
bool SimLink::stalled(Picos limit) {
  std::uint64_t completed = 0;
  for (const NodeRun& node : nodes_) completed += node.threads().completed();
  if (completed != completed_) {
    completed_ = completed;
    moved_at_ = cluster_.now();
  }
  return cluster_.now() - moved_at_ > limit;
}

PointReports SimLink::collect(std::string& failure) {
  interval_.close();
  // If every thread has failed, no wait has checked them since.
  if (failure.empty() && failed()) failure = failure_;
  if (failure.empty()) failure = steadiness_.failure(nodes_.front().why_missing() + interval_.disturbances());
  const auto report = [&](std::size_t node, std::uint64_t expected) {
    return nodes_[node].report(interval_.use(node), expected, first_cores(nodes_[node].threads().size()), failure);
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
