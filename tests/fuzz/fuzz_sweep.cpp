// The sweep file: parsed, and expanded into its points when it is one.
#include "harness/sweep/sweep.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbscope::fuzz::expect_value_or_error([&] {
    const verbscope::Sweep sweep = verbscope::parse_sweep(verbscope::fuzz::as_text(data, size), "sweep");
    if (verbscope::expand_sweep(sweep, "sim:cib").size() > verbscope::kMaxPoints) {
      verbscope::fuzz::report("more points than a sweep may have", sweep.where);
    }
  });
  return 0;
}
