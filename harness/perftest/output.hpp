// What perftest prints: its figures, and why it failed.
#pragma once

#include <string>
#include <vector>

#include "microbench/bench/outcome.hpp"

namespace verbscope {

// What one side of perftest prints.
struct PerftestOutput {
  std::string text;    // on standard output
  std::string errors;  // on standard error
};

// Adds the settings and figures of the first of these outputs that has a row of results, with the names that
// `verbscope import` gives them. Throws Error, with the last line of the errors, if none has one; `tool` is the
// program.
void add_figures(const std::string& tool, const std::vector<PerftestOutput>& outputs, Outcome& outcome);

// `end`, which says how a program of perftest failed, and the line of its last output that says why.
std::string failure_text(const std::string& end, const std::vector<std::string>& tail);

}  // namespace verbscope
