// Runs the real program to its end and captures its output.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/harness/fakes.hpp"

namespace verbscope {

inline const std::string kProgram = VERBSCOPE_BINARY_DIR "/bin/verbscope";

struct Ran {
  std::string out, err, end;
};

inline Ran run(std::vector<std::string> arguments, const std::string& program = kProgram) {
  arguments.insert(arguments.begin(), program);
  Ran ran;
  Child child(arguments, [&ran](std::string_view chunk) { ran.out += chunk; });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(240);
  const auto ended = [&child] { return !child.running(); };
  EXPECT_EQ(wait_children({&child}, deadline, nullptr, ended), WaitEnd::satisfied);
  ran.end = child.end_text();
  // Standard output precedes standard error in the tail; failed programs write only the latter.
  if (ran.out.empty() && !child.tail().empty()) ran.err = child.tail().back();
  return ran;
}

// True if perftest is installed, and the library of `verbscope simulate` built: builds with sanitizers have none.
inline bool simulates_perftest() {
  return std::system("command -v ib_write_bw > /dev/null") == 0 &&
         std::filesystem::exists(VERBSCOPE_BINARY_DIR "/bin/libverbscope_simulate.so");
}

}  // namespace verbscope
