// test_conformance [--fabric=sim:cib|verbs|verbs:DEVICE] [GoogleTest's options]: verbs behaviour
// (docs/verbs-conformance.md).
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/conformance/fabric.hpp"
#include "tests/conformance/victim.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kOption = "--fabric=";
  std::string fabric = "sim:cib";
  bool victim = false;  // the process that the tests of a peer's death start
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--victim") {
      victim = true;
      continue;
    }
    if (!word.starts_with(kOption)) {
      std::cerr << "unknown option " << word << ": allowed are --fabric=NAME and GoogleTest's\n";
      return 2;
    }
    fabric = word.substr(kOption.size());
  }
  if (const int error = ibv_fork_init(); error != 0) {  // before any memory is registered: fork_test.cpp
    std::cerr << "ibv_fork_init: " << std::strerror(error) << '\n';
    return 2;
  }
  try {
    return verbscope::conformance::run_on(
        fabric, [victim] { return victim ? verbscope::conformance::be_the_victim() : RUN_ALL_TESTS(); });
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
