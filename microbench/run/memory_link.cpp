#include "microbench/run/memory_link.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr Picos kSimTick = 5us;     // virtual: how often the nodes are looked at
constexpr Picos kSimQuiet = 100us;  // virtual: when nothing has arrived for so long, what is missing is lost
constexpr Picos kSimStuck =
    200ms;  // virtual: when nothing has completed for so long, over a retransmission, nothing will

std::vector<int> first_cores(std::size_t count) {
  std::vector<int> cores(count);
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

}  // namespace

void MemoryLink::connect() {
  std::vector<Json> clients;
  for (std::size_t c = 1; c < nodes_.size(); ++c) clients.push_back(nodes_[c].endpoints());
  const Json server = nodes_.front().endpoints();
  nodes_.front().connect(clients);
  for (std::size_t c = 1; c < nodes_.size(); ++c) nodes_[c].connect({server});
}

void MemoryLink::start() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    NodeThreads& threads = nodes_[n].threads();
    const RunControl& control = n == 0 ? server_ : clients_;
    for (std::size_t t = 0; t < threads.size(); ++t) {
      cluster_.add_thread(static_cast<int>(n), static_cast<int>(t), [&threads, &control, t](SimNode& sim_node) {
        threads.workload(t).run(sim_node, control, threads.tally(t));
        threads.tally(t).ended.store(true, std::memory_order_release);
      });
    }
  }
}

void MemoryLink::await(Step step, std::function<void()> then) {
  switch (step) {
    case Step::warm_up:
      if (schedule_.warmup == Picos(0)) return then();
      return cluster_.at(schedule_.warmup, std::move(then));
    case Step::open:  // every thread has a core of its own: none comes late
      return then();
    case Step::measure:
      if (!schedule_.iters) return cluster_.at(cluster_.now() + schedule_.duration, std::move(then));
      return look_later(step, std::move(then));
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

void MemoryLink::look(Step step, std::function<void()> then) {
  if (over(step)) return then();
  look_later(step, std::move(then));
}

void MemoryLink::look_later(Step step, std::function<void()> then) {
  cluster_.at(cluster_.now() + kSimTick, [this, step, then = std::move(then)] { look(step, then); });
}

bool MemoryLink::over(Step step) {
  if (step == Step::end) return failed() || active_ended() || stalled(kSimStuck);
  if (step == Step::drain) return failed() || everything_arrived() || stalled(kSimQuiet);
  return windows_closed() || failed() || stalled(kSimStuck);
}

// Whether the threads whose windows make the rate have all seen the end of theirs.
bool MemoryLink::windows_closed() const {
  return std::ranges::all_of(nodes_,
                             [](const NodeRun& node) { return !node.counted() || node.threads().windows_closed(); });
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
  if (failure.empty()) failure = failure_;
  const auto report = [&](std::size_t node, std::uint64_t expected) {
    return nodes_[node].report(window_.use(node), expected, first_cores(nodes_[node].threads().size()), failure);
  };
  std::uint64_t sent_in = 0;
  for (std::size_t c = 1; c < nodes_.size(); ++c) sent_in += nodes_[c].threads().sent_to(0);
  PointReports reports{.own = report(0, sent_in), .clients = std::vector<NodeReport>()};
  for (std::size_t c = 1; c < nodes_.size(); ++c) {
    reports.clients->push_back(report(c, nodes_.front().threads().sent_to(static_cast<std::uint32_t>(c - 1))));
    reports.clients->back().messages_first = true;
  }
  return reports;
}

}  // namespace verbscope
