// Simulator against closed-form model: PCIe events per operation of the machine under test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/paths.hpp"
#include "common/pcie_events.hpp"
#include "microbench/run/sim_fabric.hpp"
#include "pcie_model/render.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/microbench/test_benchmarks.hpp"

namespace verbscope::test {

inline constexpr double kTolerance = 0.01;
// Largest number per operation of an event that the model excludes, at the ends of the interval.
inline constexpr double kStray = 1e-4;

struct Comparison {
  PciePerOp measured;
  PciePerOp modelled;
  Outcome outcome;

  double extra_per_op(const std::string& name) const {
    return outcome.counters.at(0).extra.at(name).get<double>() / outcome.result.at("window_ops").get<double>();
  }
};

inline Comparison compare(Benchmark& benchmark, const std::string& line) {
  const OptionSet set(line, &benchmark);
  Comparison c;
  c.outcome = SimFabric(benchmark, set.options).run();
  EXPECT_EQ(c.outcome.failure, "") << line;
  c.modelled = prediction_from_json(c.outcome.prediction, "prediction").pcie;
  const double ops = c.outcome.result.at("window_ops").get<double>();
  std::vector<double> counted;
  PcieCounts::each(c.outcome.counters.at(0).events,
                   [&](const char*, std::uint64_t n) { counted.push_back(static_cast<double>(n) / ops); });
  auto next = counted.begin();
  PciePerOp::each(c.measured, [&](const char*, double& value) { value = *next++; });
  return c;
}

inline void expect_agreement(const Comparison& c, const std::string& line) {
  std::vector<double> measured;
  PciePerOp::each(c.measured, [&](const char*, double value) { measured.push_back(value); });
  auto next = measured.begin();
  PciePerOp::each(c.modelled, [&](const char* name, double expected) {
    const double value = *next++;
    const double allowed = expected == 0 ? kStray : kTolerance * expected;
    EXPECT_NEAR(value, expected, allowed) << name << " per operation, " << line;
  });
}

// The path of a copy of a profile with one parameter of its NIC changed.
inline std::string changed_profile(const TempDir& folder, const std::string& name, const std::string& key,
                                   const Json& value) {
  Json profile = read_json_file(find_config("clusters", name));
  profile.at("nic").at(key).at("value") = value;
  const std::filesystem::path path = folder / (name + ".json");
  std::ofstream(path) << profile;
  return path.string();
}

// A small input buffer: a slow receiver stops the sender soon, so the steady state begins early.
inline std::string quickly_steady(const TempDir& folder, const std::string& name) {
  return changed_profile(folder, name, "input_buffer_bytes", 8192);
}

struct GridPart {
  std::string cluster;
  std::string connection;
};

inline std::ostream& operator<<(std::ostream& out, const GridPart& part) {
  return out << part.cluster << '_' << part.connection;
}

}  // namespace verbscope::test
