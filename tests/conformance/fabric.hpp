// The fabric of the suite: two nodes of a simulated cluster, or a device of this machine with both ends on it. Chosen
// once per process by --fabric; the tests see only what both have in common.
#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <string>

#include "common/units.hpp"
#include "verbs/provider.hpp"

namespace verbscope::conformance {

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual bool simulated() const = 0;
  virtual Provider& provider(int side) = 0;  // side 0 or 1
  virtual std::string device() const = 0;    // its name for Provider::open

  // The Node of the thread that runs the tests (machine/node.hpp).
  virtual Picos now() = 0;
  virtual void idle() = 0;
  virtual void watch(const void* memory, std::size_t bytes) = 0;
  virtual void poll_memory() = 0;
  virtual ibv_cq* await_event(ibv_comp_channel* channel, Nanos timeout) = 0;

  // idle() comes back by `when` at the latest.
  virtual void wake_at(Picos when) = 0;
  // Lets time pass.
  virtual void pass(Nanos time) = 0;
  // No wait of a test takes longer unless something is wrong.
  virtual Nanos patience() const = 0;
};

// The fabric of this run; valid inside of run_on().
Fabric& fabric();

// Runs `body` with fabric() being `name`: "sim:PROFILE", "verbs" (the first device) or "verbs:DEVICE". Yields what body
// yields; throws Error when there is no such fabric.
int run_on(const std::string& name, const std::function<int()>& body);

}  // namespace verbscope::conformance
