// The record of a simulation of programs: its counters in the interval in which the programs were busiest.
#pragma once

#include <cstdint>
#include <vector>

#include "common/record.hpp"
#include "nic_sim/node_counts.hpp"

namespace verbscope {

class Recorder {
 public:
  // The cluster must outlive the recorder.
  explicit Recorder(const SimCluster& cluster) : cluster_(cluster) {}

  // Call often, between events: keeps the counts from time to time. Time without messages is one part, so that a short
  // measurement between long pauses is not lost.
  void look() {
    if (cluster_.now() >= next_) note();
  }

  // The busiest steady interval: the longest in which each part has at least half of the usual rate.
  struct Interval {
    Picos begin{0}, end{0};
    std::size_t first = 0, last = 0;  // of the moments
  };
  // Adds rates and counters to the record. The node that sent most messages is its "server".
  void complete(Record& record, const Profile& profile);

 private:
  struct Moment {
    Picos time{0};
    std::vector<NodeCounts> nodes;
  };

  void note();
  void thin();
  std::uint64_t sent(std::size_t from, std::size_t to, std::size_t node) const;
  std::uint64_t sent_by_all(std::size_t from, std::size_t to) const;
  double rate(std::size_t from, std::size_t to) const;
  // The moments at the borders of the parts whose rates are judged.
  std::vector<std::size_t> borders_of_parts() const;
  double usual_rate(const std::vector<std::size_t>& borders) const;
  Interval busiest() const;

  const SimCluster& cluster_;
  Picos next_{0};
  Picos period_{5'000'000};
  std::vector<Moment> moments_;
};

}  // namespace verbscope
