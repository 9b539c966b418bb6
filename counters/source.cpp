#include "counters/source.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/clock.hpp"

namespace verbscope {

namespace {

Json whole(double value) {
  return std::isfinite(value) ? Json(std::llround(value)) : Json();
}

// Sets the events that have a rule, and adds the names of the others to `unseen`.
void fill_events(const std::vector<EventRule>& rules, const Columns& net, CounterReport& report) {
  PcieCounts::each(report.events, [&](const char* name, std::uint64_t& value) {
    const auto rule = std::ranges::find(rules, name, &EventRule::first);
    if (rule == rules.end()) {
      report.unseen.emplace_back(name);
      return;
    }
    double sum = 0;
    for (const std::string& column : rule->second) {
      const auto found = net.find(column);
      if (found != net.end() && std::isfinite(found->second)) sum += found->second;
    }
    value = static_cast<std::uint64_t>(std::llround(sum));
  });
}

}  // namespace

CounterReport make_report(const std::string& source, const std::string& blind, const Counted& counted,
                          const std::vector<EventRule>& rules) {
  CounterReport report{.source = source, .node = "", .blind = blind, .window_s = counted.window_s, .events = {}};
  Json raw = Json::object(), background = Json::object(), net = Json::object();
  Columns net_columns;
  for (const auto& [name, value] : counted.raw) {
    const auto found = counted.background_per_s.find(name);
    const double per_s = found == counted.background_per_s.end() ? 0 : found->second;
    const double less = value - per_s * counted.window_s;
    net_columns[name] = std::isfinite(less) ? std::max(0.0, less) : value;
    raw[name] = whole(value);
    background[name] = per_s;
    net[name] = whole(net_columns[name]);
  }
  fill_events(rules, net_columns, report);
  report.extra =
      Json{{"raw", raw}, {"background_s", counted.background_s}, {"background_per_s", background}, {"net", net}};
  return report;
}

CounterReport missing_report(const std::string& source, const std::string& reason) {
  CounterReport report{
      .source = source, .node = "", .blind = "nothing counted: " + reason, .window_s = 0, .events = {}};
  fill_events({}, {}, report);
  return report;
}

void SnapshotSource::read(Moment moment) {
  const Picos before = TscClock::now();
  Sums values = snapshot();
  const Picos after = TscClock::now();
  snapshots_[static_cast<std::size_t>(moment)] = {before + (after - before) / 2, std::move(values)};
}

Columns SnapshotSource::differences(Moment begin, Moment end) const {
  Columns differences;
  const Sums& before = at(begin).values;
  for (const auto& [name, value] : at(end).values) {
    const auto found = before.find(name);
    if (found == before.end()) continue;
    differences[name] =
        value >= found->second ? static_cast<double>(value - found->second) : std::numeric_limits<double>::quiet_NaN();
  }
  return differences;
}

Counted SnapshotSource::counted() const {
  const auto seconds = [this](Moment begin, Moment end) { return to_seconds(at(end).time - at(begin).time); };
  Counted counted{.window_s = seconds(Moment::window_begin, Moment::window_end),
                  .raw = differences(Moment::window_begin, Moment::window_end),
                  .background_s = seconds(Moment::background_begin, Moment::background_end),
                  .background_per_s = {}};
  if (counted.background_s <= 0) return counted;
  for (const auto& [name, count] : differences(Moment::background_begin, Moment::background_end)) {
    counted.background_per_s[name] = count / counted.background_s;
  }
  return counted;
}

}  // namespace verbscope
