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
// Fewest messages of a part whose rate is judged. With fewer, its rate is a matter of chance.
constexpr std::uint64_t kJudged = 16;

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

// Joins parts in pairs, but for pauses of at least the new period.
void Recorder::thin() {
  period_ *= 2;
  const std::size_t last = moments_.size() - 1;
  std::vector<bool> borders_pause(moments_.size());
  for (std::size_t i = 0; i < last; ++i) {
    const bool pause = moments_[i + 1].time - moments_[i].time >= period_ && rate(i, i + 1) <= 0;
    if (pause) borders_pause[i] = borders_pause[i + 1] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    if (i % 2 == 0 || i == last || borders_pause[i]) std::swap(moments_[kept++], moments_[i]);
  }
  moments_.resize(kept);
}

std::uint64_t Recorder::sent(std::size_t from, std::size_t to, std::size_t node) const {
  return moments_[to].nodes[node].nic.messages_sent - moments_[from].nodes[node].nic.messages_sent;
}

std::uint64_t Recorder::sent_by_all(std::size_t from, std::size_t to) const {
  std::uint64_t messages = 0;
  for (std::size_t node = 0; node < moments_[to].nodes.size(); ++node) messages += sent(from, to, node);
  return messages;
}

double Recorder::rate(std::size_t from, std::size_t to) const {
  const Picos time = moments_[to].time - moments_[from].time;
  return time.count() > 0 ? static_cast<double>(sent_by_all(from, to)) / to_seconds(time) : 0;
}

// A part ends with the moment at which it has enough messages. So moments between rare messages are no pauses.
std::vector<std::size_t> Recorder::borders_of_parts() const {
  std::vector<std::size_t> found{0};
  for (std::size_t i = 1; i < moments_.size(); ++i) {
    if (sent_by_all(found.back(), i) >= kJudged || i + 1 == moments_.size()) found.push_back(i);
  }
  return found;
}

// Half of all messages are sent in parts with at most this rate: a burst at the beginning does not count.
double Recorder::usual_rate(const std::vector<std::size_t>& borders) const {
  std::vector<std::pair<double, std::uint64_t>> parts;  // rates, and numbers of messages
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    parts.emplace_back(rate(borders[i], borders[i + 1]), sent_by_all(borders[i], borders[i + 1]));
  }
  std::ranges::sort(parts);
  const std::uint64_t all = sent_by_all(borders.front(), borders.back());
  std::uint64_t below = 0;
  for (const auto& [part_rate, messages] : parts) {
    below += messages;
    if (2 * below >= all) return part_rate;
  }
  return 0;
}

Recorder::Interval Recorder::busiest() const {
  const std::vector<std::size_t> borders = borders_of_parts();
  const double usual = usual_rate(borders);
  Interval best{.begin = moments_.front().time, .end = moments_.back().time, .first = 0, .last = moments_.size() - 1};
  if (usual <= 0) return best;
  Picos longest{-1};
  for (std::size_t first = 0; first + 1 < borders.size(); ++first) {
    std::size_t last = first;
    while (last + 1 < borders.size() && rate(borders[last], borders[last + 1]) >= kSteadyShare * usual) ++last;
    const Moment &begin = moments_[borders[first]], &end = moments_[borders[last]];
    if (last > first && end.time - begin.time > longest) {
      longest = end.time - begin.time;
      best = {.begin = begin.time, .end = end.time, .first = borders[first], .last = borders[last]};
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
