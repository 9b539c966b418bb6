#include "harness/learn/survey.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/error.hpp"
#include "harness/sweep/progress.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kDifferentPoints = 2;

// log(figure), larger is faster. Nothing if the point failed.
std::optional<double> speed_of(const Record& record) {
  const std::optional<double> figure = measured_value(record);
  if (!figure) return std::nullopt;
  return figure_key(record) == "rate_mops" ? std::log(*figure) : -std::log(*figure);
}

// The usual speed of a point: the second fastest of more than two hosts, the faster one of two. Disturbances make a
// point slower, and more than one host may be disturbed at the same point.
double usual_speed(std::vector<double> speeds) {
  std::ranges::sort(speeds, std::greater());
  return speeds.size() > 2 ? speeds[1] : speeds.front();
}

}  // namespace

Survey survey_of(const std::vector<std::string>& hosts, const std::vector<Candidate>& points,
                 const std::function<std::optional<Record>(const Point&, std::size_t server)>& measure) {
  Survey out;
  std::vector<SlowHost> found(hosts.size());
  std::vector<std::vector<Record>> records(hosts.size());
  for (const Candidate& each : points) {
    std::vector<double> speeds;
    std::vector<std::size_t> of;
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      const std::optional<Record> record = measure(each.point, host);
      if (!record) return {.records = {}, .good = {}, .slow = {}, .interrupted = true};
      records[host].push_back(*record);
      if (const auto speed = speed_of(*record)) {
        speeds.push_back(*speed);
        of.push_back(host);
      }
    }
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      const double off = speeds[i] - usual_speed(speeds);
      if (std::abs(off) <= kHostsDiffer) continue;
      SlowHost& host = found[of[i]];
      ++host.points;
      if (std::abs(std::expm1(off)) * 100 <= std::abs(host.worst_percent)) continue;
      host.worst = PointNames({each.point}).name(each.point);
      host.worst_percent = std::expm1(off) * 100;
    }
  }
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (found[host].points >= kDifferentPoints) {
      found[host].name = hosts[host];
      out.slow.push_back(found[host]);
      continue;
    }
    out.good.push_back(host);
    out.records.insert(out.records.end(), records[host].begin(), records[host].end());
  }
  if (out.good.empty())
    fail("the hosts differ from each other at {} or more points: learn one of them with --hosts HOST",
         kDifferentPoints);
  return out;
}

}  // namespace verbscope
