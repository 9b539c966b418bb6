// The points that `verbscope learn` may measure, and what a point's figure is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

struct Candidate {
  Point point;
  std::string kind;  // "WRITE rate", "latency": groups of points in the report
};

// Facts that decide which points make sense.
struct CandidateFacts {
  int cores = 1;
  std::uint64_t mtu = 4096;        // bytes of payload per packet
  std::uint64_t max_inline = 256;  // largest inline payload, bytes
};

// All candidates, kind by kind. Within a kind neighbours are similar, so that each n-th one represents the kind.
std::vector<Candidate> candidate_points(const CandidateFacts& facts);

// A few points of different limits, to compare hosts with each other and profiles with the cluster.
std::vector<Candidate> survey_points(const CandidateFacts& facts);

// The same benchmark and options.
bool same_point(const Point& a, const Point& b);

// The kind of any record, from its benchmark and options.
std::string kind_of(const Point& point);

// The properties of the operation (parameters.hpp). A point of a benchmark that is not among the candidates has all.
std::uint32_t properties_of(const Point& point, const CandidateFacts& facts);

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
