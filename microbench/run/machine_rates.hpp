// The rate of a machine among machines that all post alike.
#pragma once

#include <string>

#include "common/json.hpp"
#include "microbench/bench/outcome.hpp"

namespace verbscope {

inline constexpr const char* kMachineRate = "mops_per_machine";

// Adds to the server's result the mean rate of all machines in Mops, and their spread: the largest rate minus the
// smallest, as a share of the mean. Sets the failure if a machine completed nothing.
void add_machine_rates(Outcome& outcome);

// One line for the console; empty at a client, whose result has no mean.
std::string machine_rates_line(const Json& result);

}  // namespace verbscope
