// The closed-form model of the server of a store whose GETs are one-sided.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pcie_model/predict.hpp"
#include "systems/one_sided/ends.hpp"

namespace verbscope {

// READs of places that are `stride` bytes apart, from `begin` on.
struct ReadsOfPlaces {
  std::uint64_t begin = 0;
  std::uint64_t stride = 0;
  std::uint32_t bytes = 0;
  double per_op = 0;
  // Counted READs by offset modulo ReadCounts::kPeriod; empty: all places are equally likely.
  std::map<std::uint64_t, double> by_offset;
};

// The server's work per operation: `reads`, and `puts` messages with their answers.
struct OneSidedLoad {
  std::vector<ReadsOfPlaces> reads;
  double puts = 0;
  PutPaths paths;
};

Prediction predict_one_sided(const ClusterWire& cluster, const Operation& op, int ports, const OneSidedLoad& load);

}  // namespace verbscope
