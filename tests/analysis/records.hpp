// Records by hand for the tests of the analysis.
#pragma once

#include "common/paths.hpp"
#include "pcie_model/render.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {

inline const ClusterWire& cib() {
  static const ClusterWire wire = [] {
    const std::filesystem::path path = find_config("clusters", "cib");
    return read_cluster_wire(read_json_file(path), path.string());
  }();
  return wire;
}

// A run of a sweep with these options, and its rate.
inline Record sweep_record(const Json& params, double rate_mops, int repetition = 0,
                           const std::string& fabric = "sim:cib") {
  Record record = fake_record(fabric);
  record.config = params;
  record.config["point"] = Json{{"benchmark", record.benchmark},
                                {"params", params},
                                {"repetition", repetition},
                                {"seed", 1 + repetition},
                                {"fabric", fabric}};
  record.result = Json{{"rate_mops", rate_mops}, {"window_ops", 1000}};
  return record;
}

// The same in a sweep that labels its curve.
inline Record labelled(const std::string& label, const Json& params, double rate,
                       const std::string& fabric = "sim:cib") {
  Record record = sweep_record(params, rate, 0, fabric);
  record.environment["harness"] = Json{{"sweep", "s.json"}, {"place", 0}, {"label", label}};
  return record;
}

inline std::vector<const Record*> pointers(const std::vector<Record>& records) {
  std::vector<const Record*> out;
  for (const Record& record : records) out.push_back(&record);
  return out;
}

}  // namespace verbscope
