#include "harness/learn/survey.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "analysis/points.hpp"
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

// Figures of several hosts at the same points.
class HostComparison {
 public:
  // Host and point are numbers or names of the caller.
  void add(const std::string& host, const std::string& point, const Record& record, const Point& of) {
    const auto speed = speed_of(record);
    if (speed) points_[point].push_back({.host = host, .speed = *speed, .point = of});
  }

  std::vector<SlowHost> slow() const {
    std::map<std::string, SlowHost> found;
    for (const auto& [name, figures] : points_) {
      std::vector<double> speeds;
      for (const Figure& each : figures) speeds.push_back(each.speed);
      for (const Figure& each : figures) {
        const double off = each.speed - usual_speed(speeds);
        if (std::abs(off) <= kHostsDiffer) continue;
        SlowHost& host = found[each.host];
        host.name = each.host;
        ++host.points;
        if (std::abs(std::expm1(off)) * 100 <= std::abs(host.worst_percent)) continue;
        host.worst = PointNames({each.point}).name(each.point);
        host.worst_percent = std::expm1(off) * 100;
      }
    }
    std::vector<SlowHost> out;
    for (auto& [name, host] : found) {
      if (host.points >= kDifferentPoints) out.push_back(std::move(host));
    }
    return out;
  }

 private:
  struct Figure {
    std::string host;
    double speed;
    Point point;
  };
  std::map<std::string, std::vector<Figure>> points_;
};

bool is_slow(const std::vector<SlowHost>& slow, const std::string& host) {
  return std::ranges::find(slow, host, &SlowHost::name) != slow.end();
}

}  // namespace

std::vector<SlowHost> slow_hosts(const std::vector<Record>& records) {
  HostComparison comparison;
  std::map<std::string, std::set<std::string>> hosts;  // by point: one figure of each host counts
  for (const Record& record : records) {
    const Json* const params = value_at(record.config, "point.params");
    const std::string host = harness_text(record, "server");
    if (params == nullptr || host.empty()) continue;
    const Point point{.benchmark = record.benchmark, .params = *params};
    const std::string name = record.benchmark + " " + dump_json(*params);
    if (hosts[name].insert(host).second) comparison.add(host, name, record, point);
  }
  return comparison.slow();
}

Survey survey_of(const std::vector<std::string>& hosts, const std::vector<Candidate>& points,
                 const std::function<std::optional<Record>(const Point&, std::size_t server)>& measure) {
  Survey out;
  HostComparison comparison;
  std::vector<std::vector<Record>> records(hosts.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      const std::optional<Record> record = measure(points[i].point, host);
      if (!record) return {.records = {}, .good = {}, .slow = {}, .interrupted = true};
      records[host].push_back(*record);
      comparison.add(hosts[host], fmt::format("{}", i), *record, points[i].point);
    }
  }
  out.slow = comparison.slow();
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (is_slow(out.slow, hosts[host])) continue;
    out.good.push_back(host);
    out.records.insert(out.records.end(), records[host].begin(), records[host].end());
  }
  if (out.good.empty())
    fail("the hosts differ from each other at {} or more points: learn one of them with --hosts HOST",
         kDifferentPoints);
  return out;
}

}  // namespace verbscope
