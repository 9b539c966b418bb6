// Prints the progress of a sweep: on a terminal, one line that is rewritten while a point runs; elsewhere, one line per
// finished point.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "harness/sweep/time_left.hpp"

namespace verbscope {

class Progress {
 public:
  // `time_left` was made from the points that will run; `terminal` is true if `out` is one.
  Progress(TimeLeft time_left, std::FILE* out, bool terminal);

  void started(const std::string& name);
  // `place`: index of the point; `outcome`: "101.60 Mops"; `took`: wall-clock time.
  void finished(std::size_t place, const std::string& name, const std::string& outcome,
                std::chrono::duration<double> took);

 private:
  std::string left_text() const;
  void say(const std::string& line, bool ended);

  TimeLeft time_left_;
  std::size_t done_ = 0;
  std::FILE* out_;
  bool terminal_;
};

// "0.4 s", "12 s", "3 min 20 s", "2 h 05 min".
std::string duration_text(std::chrono::duration<double> duration);

}  // namespace verbscope
