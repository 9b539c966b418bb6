#include "microbench/run/node_threads.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

std::string describe(const RunEnd& end) {
  switch (end.kind) {
    case EndKind::completion_failed:
      return fmt::format("completion with status {} ({}), vendor error 0x{:x}", end.code,
                         ibv_wc_status_str(static_cast<ibv_wc_status>(end.code)), end.vendor_error);
    case EndKind::post_failed:
      return fmt::format("post: {}", errno_text(end.code));
    case EndKind::poll_failed:
      return fmt::format("poll of the completion queue: {}", errno_text(end.code));
    case EndKind::finished:
    case EndKind::gave_up:
      break;
  }
  return "gave up";
}

namespace {

double mops_between(Picos begin, Picos end, std::uint64_t ops) {
  return begin < end ? to_mops(Ops(ops), end - begin) : 0;
}

IntervalRates rates_of(const IntervalBounds& w) {
  return {.ops = w.end_ops - w.begin_ops,
          .mops = mops_between(w.begin, w.end, w.end_ops - w.begin_ops),
          .first_half_mops = mops_between(w.begin, w.half, w.half_ops - w.begin_ops),
          .second_half_mops = mops_between(w.half, w.end, w.end_ops - w.half_ops)};
}

// The rate of a thread is the sum of the rates of its queues, each over an interval of its own. Zeros until the
// interval is closed.
IntervalRates rates_of(const ThreadTally& tally) {
  if (!tally.closed()) return {};
  if (tally.queue_intervals.empty()) return rates_of(tally.interval);
  IntervalRates sum;
  for (const IntervalBounds& queue : tally.queue_intervals) sum += rates_of(queue);
  return sum;
}

}  // namespace

bool NodeThreads::counts() const {
  return std::ranges::any_of(workloads_, [](const auto& workload) { return workload->counts(); });
}

bool NodeThreads::active_ended() const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    const ThreadTally& tally = tallies_[t];
    const bool done = tally.ended.load(std::memory_order_acquire) || tally.drained.load(std::memory_order_acquire);
    if (workloads_[t]->active() && !done) return false;
  }
  return true;
}

bool NodeThreads::intervals_noted(Phase phase) const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (workloads_[t]->counts() && tallies_[t].noted.load(std::memory_order_acquire) < phase) return false;
  }
  return true;
}

void NodeThreads::forget_intervals() {
  for (ThreadTally& tally : tallies_) tally.noted.store(Phase::warmup, std::memory_order_release);
}

IntervalRates NodeThreads::interval_rates() const {
  IntervalRates sum;
  for (const ThreadTally& tally : tallies_) sum += rates_of(tally);
  return sum;
}

std::uint64_t NodeThreads::received() const {
  std::uint64_t sum = 0;
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    const ThreadTally& tally = tallies_[t];
    sum += (workloads_[t]->active() ? tally.arrived : tally.done_ops).load(std::memory_order_relaxed);
  }
  return sum;
}

std::uint64_t NodeThreads::completed() const {
  std::uint64_t sum = 0;
  for (const ThreadTally& tally : tallies_) sum += tally.done_ops.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t NodeThreads::armed() const {
  std::uint64_t sum = 0;
  for (const ThreadTally& tally : tallies_) sum += tally.armed.load(std::memory_order_relaxed);
  return sum;
}

std::optional<std::size_t> NodeThreads::failed() const {
  for (std::size_t t = 0; t < tallies_.size(); ++t) {
    if (!tallies_[t].ended.load(std::memory_order_acquire)) continue;
    const EndKind kind = tallies_[t].end.kind;
    if (kind != EndKind::finished && kind != EndKind::gave_up) return t;
  }
  return std::nullopt;
}

std::uint64_t NodeThreads::sent_to(std::uint32_t node) const {
  std::uint64_t sum = 0;
  for (const auto& workload : workloads_) sum += workload->sent_to(node);
  return sum;
}

ThreadReport NodeThreads::report(std::size_t thread, int core) const {
  ThreadReport report{.core = core};
  const IntervalRates rates = rates_of(tallies_[thread]);
  report.ops = rates.ops;
  report.rate_mops = rates.mops;
  report.window_s = rates.mops > 0 ? static_cast<double>(rates.ops) / rates.mops * 1e-6 : 0;
  if (const std::uint64_t round = workloads_[thread]->round(); round > 0) {
    report.rounds = static_cast<double>(report.ops) / static_cast<double>(round);
  }
  return report;
}

Picos NodeThreads::counted_span() const {
  Picos begin = Picos::max(), end{0};
  for (const ThreadTally& tally : tallies_) {
    if (!tally.closed() || tally.interval.end_ops == tally.interval.begin_ops) continue;
    begin = std::min(begin, tally.interval.begin);
    end = std::max(end, tally.interval.end);
  }
  return begin < end ? end - begin : Picos(0);
}

double NodeThreads::rate_before() const {
  double sum = 0;
  for (const ThreadTally& tally : tallies_) {
    if (tally.closed()) sum += mops_between(tally.started, tally.interval.begin, tally.interval.begin_ops);
  }
  return sum;
}

Delivery NodeThreads::delivery(std::uint64_t expected, bool validated) const {
  Delivery sum{.expected = expected, .validated = validated};
  for (const auto& workload : workloads_) {
    sum.received += workload->received();
    sum.validation.checked += workload->checked();
    sum.validation.wrong += workload->wrong();
  }
  return sum;
}

Json NodeThreads::findings(const Benchmark& benchmark) const {
  std::vector<const Workload*> workloads;
  for (const auto& workload : workloads_) workloads.push_back(workload.get());
  return benchmark.results(workloads);
}

bool NodeThreads::relaxed() const {
  return std::ranges::any_of(workloads_, [](const auto& workload) { return workload->relaxed(); });
}

Json NodeThreads::describe_memory() const {
  Json memory = Json::array();
  for (const auto& workload : workloads_) {
    const std::string line = workload->memory();
    if (!line.empty() && (memory.empty() || memory.back() != line)) memory.push_back(line);
  }
  return memory;
}

}  // namespace verbscope
