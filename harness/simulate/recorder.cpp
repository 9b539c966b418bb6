#include "harness/simulate/recorder.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/units.hpp"

namespace verbscope {
namespace {

// The moments that are kept. With more, parts are joined in pairs, and the period doubles.
constexpr std::size_t kMoments = 128;
constexpr double kSteadyShare = 0.5;  // of the usual rate

}  // namespace

void Recorder::note() {
  Moment moment{.time = cluster_.now(), .nodes = {}};
  for (int node = 0; node < cluster_.nodes(); ++node) moment.nodes.push_back(node_counts(cluster_, node));
  next_ = cluster_.now() + period_;
  moments_.push_back(std::move(moment));
  const std::size_t last = moments_.size() - 1;
  if (last >= 2 && rate(last - 2, last) <= 0) {  // a pause goes on
    std::swap(moments_[last - 1], moments_[last]);
    moments_.pop_back();
  }
  if (moments_.size() > kMoments) thin();
}

// Joins parts in pairs, but for pauses.
void Recorder::thin() {
  std::vector<bool> borders_pause(moments_.size());
  for (std::size_t i = 0; i + 1 < moments_.size(); ++i) {
    if (rate(i, i + 1) <= 0) borders_pause[i] = borders_pause[i + 1] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    if (i % 2 == 0 || borders_pause[i]) std::swap(moments_[kept++], moments_[i]);
  }
  moments_.resize(kept);
  period_ *= 2;
}

std::uint64_t Recorder::sent(std::size_t from, std::size_t to, std::size_t node) const {
  return moments_[to].nodes[node].nic.messages_sent - moments_[from].nodes[node].nic.messages_sent;
}

double Recorder::rate(std::size_t from, std::size_t to) const {
  std::uint64_t messages = 0;
  for (std::size_t node = 0; node < moments_[to].nodes.size(); ++node) messages += sent(from, to, node);
  const Picos time = moments_[to].time - moments_[from].time;
  return time.count() > 0 ? static_cast<double>(messages) / to_seconds(time) : 0;
}

// Half of all messages are sent in parts with at most this rate: a burst at the beginning does not count.
double Recorder::usual_rate() const {
  std::vector<std::pair<double, double>> parts;  // rates, and numbers of messages
  double all = 0;
  for (std::size_t i = 0; i + 1 < moments_.size(); ++i) {
    const double messages = rate(i, i + 1) * to_seconds(moments_[i + 1].time - moments_[i].time);
    parts.emplace_back(rate(i, i + 1), messages);
    all += messages;
  }
  std::ranges::sort(parts);
  double below = 0;
  for (const auto& [part_rate, messages] : parts) {
    below += messages;
    if (2 * below >= all) return part_rate;
  }
  return 0;
}

Recorder::Interval Recorder::busiest() const {
  const double usual = usual_rate();
  Interval best{.begin = moments_.front().time, .end = moments_.back().time, .first = 0, .last = moments_.size() - 1};
  if (usual <= 0) return best;
  Picos longest{-1};
  for (std::size_t first = 0; first + 1 < moments_.size(); ++first) {
    std::size_t last = first;
    while (last + 1 < moments_.size() && rate(last, last + 1) >= kSteadyShare * usual) ++last;
    const Picos length = moments_[last].time - moments_[first].time;
    if (last > first && length > longest) {
      longest = length;
      best = {.begin = moments_[first].time, .end = moments_[last].time, .first = first, .last = last};
    }
    first = std::max(first, last);
  }
  return best;
}

void Recorder::complete(Record& record, const Profile& profile) {
  note();
  const Interval interval = busiest();
  const Picos time = interval.end - interval.begin;
  std::vector<std::size_t> order(moments_.front().nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t node) { return sent(interval.first, interval.last, node); });
  const std::uint64_t messages = sent(interval.first, interval.last, order.front());
  record.result["window_s"] = to_seconds(time);
  record.result["window_begin_s"] = to_seconds(interval.begin);
  record.result["window_ops"] = messages;
  record.result["rate_mops"] = time.count() > 0 ? static_cast<double>(messages) / to_seconds(time) * 1e-6 : 0.0;
  record.result["simulated_s"] = to_seconds(cluster_.now());
  Json nodes = Json::array();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string name = i == 0 ? "server" : fmt::format("client{}", i - 1);
    nodes.push_back(Json{{"node", name}, {"program", fmt::format("node{}", order[i])}});
    record.counters.push_back(counter_report(moments_[interval.first].nodes[order[i]],
                                             moments_[interval.last].nodes[order[i]], time, name, profile));
  }
  record.result["nodes"] = std::move(nodes);
}

}  // namespace verbscope
