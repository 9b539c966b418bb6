// The points that `verbscope learn` may measure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace verbscope
