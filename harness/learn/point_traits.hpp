// What `verbscope learn` reads from the options of a point: its kind, its load, the properties of its operation, and
// which figure it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The same benchmark and options.
bool same_point(const Point& a, const Point& b);

// The kind of any record, from its benchmark and options.
std::string kind_of(const Point& point);

// The properties of the operation (parameters.hpp), whose packets carry up to `mtu` bytes. A point of a benchmark that
// is not among the candidates has all.
std::uint32_t properties_of(const Point& point, std::uint64_t mtu);

// The path of the figure in a result: the rate, or the mean latency of a benchmark of latencies, or the median if there
// is no mean.
std::string figure_key(const Record& record);
std::string figure_key(const Point& candidate);
// Nothing if the record failed or has no figure.
std::optional<double> measured_value(const Record& record);

// The load on the machine under test. If all machines measure at the same time, the load on each.
struct PointLoad {
  double outstanding = 1;  // operations, at most
  double qps = 1;
  double machines = 1;  // the number of machines that measure
};
PointLoad load_of(const Point& point);

// True if an interval of up to `us` microseconds does not show the rate of the point, about `figure` Mops. There are
// two reasons. A core that polls a completion after each few operations gets slower once the send queue is full, which
// takes long. And with a completion after many slow operations, an interval may have none.
bool needs_long_interval(const Point& point, double figure, double us);

// About the figure of a point on any adapter, Mops or ns: how long an interval has to be.
double expected_figure(const Point& point);

}  // namespace verbscope
