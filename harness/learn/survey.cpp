#include "harness/learn/survey.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "analysis/keys.hpp"
#include "common/error.hpp"
#include "harness/sweep/progress.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kDifferentPoints = 2;

// log(figure), larger is faster.
double speed_of(double figure, const std::string& key) {
  return is_latency(key) ? -std::log(figure) : std::log(figure);
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
  // `number` tells the points apart. The first figure of a host at a point counts.
  void add(std::size_t number, const Point& point, const std::string& host, double speed) {
    std::vector<Figure>& figures = points_[number];
    if (std::ranges::find(figures, host, &Figure::host) == figures.end()) figures.push_back({host, speed, point});
  }

  std::vector<SlowHost> slow() const {
    std::map<std::string, SlowHost> found;
    for (const auto& [number, figures] : points_) {
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
  std::map<std::size_t, std::vector<Figure>> points_;
};

bool is_slow(const std::vector<SlowHost>& slow, const std::string& host) {
  return std::ranges::find(slow, host, &SlowHost::name) != slow.end();
}

}  // namespace

std::vector<SlowHost> slow_hosts(const std::vector<MeasuredFigure>& figures, const std::vector<Candidate>& points) {
  HostComparison comparison;
  for (const MeasuredFigure& each : figures) {
    for (std::size_t i = 0; i < points.size() && !each.server.empty(); ++i) {
      if (same_point(points[i].point, each.point))
        comparison.add(i, each.point, each.server, speed_of(each.figure, each.key));
    }
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
      if (const auto figure = measured_value(*record))
        comparison.add(i, points[i].point, hosts[host], speed_of(*figure, figure_key(*record)));
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
