// The device of one node in a run: its ports in use, and the region that peers reach.
#pragma once

#include <cstdint>
#include <optional>

#include "common/json.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/region.hpp"
#include "microbench/run/node_ports.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

class NodeDevice {
 public:
  // Opens the ports of `place`, and registers the region that the benchmark wants. Throws what NodePorts throws, and
  // Error. `part` must outlive the device.
  NodeDevice(const NodePart& part, const NodePlace& place);

  const Device& device() const { return ports_.device(); }
  const Pd& pd() const { return pd_; }
  NodePorts& ports() { return ports_; }
  const NodePorts& ports() const { return ports_; }

  int access() const { return access_; }  // rights that peers have through the node's QPs
  LocalRegion region() const;             // empty when the benchmark asked for none
  RemoteRegion shared_region() const;     // the same region as peers address it; zeros when there is none

  // The memory of the region for the record; null when there is none.
  bool region_relaxed() const { return region_relaxed_; }  // with relaxed ordering
  Json describe_region() const { return region_ ? Json(region_->describe()) : Json(); }

 private:
  void create_region();

  const NodePart& part_;
  int access_ = 0;
  bool region_relaxed_ = false;
  // In the order of dependence: destroyed from the last.
  NodePorts ports_;
  Pd pd_;
  std::optional<Buffer> region_;
  std::optional<Mr> region_mr_;
};

}  // namespace verbscope
