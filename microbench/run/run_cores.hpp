// The cores of one run on this machine: those of its threads, which another run on this machine does not take by
// itself, and those of the controller, which none of its threads measures on, where there are more.
#pragma once

#include <cstddef>
#include <vector>

#include "machine/threads.hpp"

namespace verbscope {

class RunCores {
 public:
  // `named` are the cores of --cores; empty: those that this process may run on. Warns of cores that another run holds.
  RunCores(const std::vector<int>& named, std::size_t threads, CoreClaims claims = CoreClaims());

  const std::vector<int>& threads() const { return threads_; }  // thread i has threads()[i]
  // Empty: whatever cores this process may run on.
  const std::vector<int>& controller() const { return controller_; }

 private:
  CoreClaims claims_;
  std::vector<int> threads_;
  std::vector<int> controller_;
};

}  // namespace verbscope
