#include "harness/sweep/benchmarks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "common/error.hpp"
#include "common/text.hpp"
#include "harness/process/child.hpp"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kDescribeTimeout{10};
constexpr std::size_t kMaxDescription = 1 << 20;

}  // namespace

std::vector<std::string> benchmark_names() {
  std::istringstream names(VERBSCOPE_BENCHMARKS);
  return {std::istream_iterator<std::string>(names), {}};
}

std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark) {
  const std::vector<std::string> names = benchmark_names();
  if (std::ranges::find(names, benchmark) == names.end()) {
    const std::string meant = did_you_mean(benchmark, names);
    fail("no benchmark is called \"{}\"{}", benchmark,
         meant.empty() ? fmt::format("; there are {}", fmt::join(names, ", ")) : meant);
  }
  return folder / benchmark;
}

BenchmarkSpec describe_benchmark(const std::filesystem::path& binary) {
  if (!std::filesystem::exists(binary)) {
    fail("{} is not built: there is no {}; `make -f Makefile.cluster programs` builds every benchmark",
         binary.filename().string(), binary.string());
  }
  std::string output;
  Child child({binary.string(), "--describe"}, [&output](std::string_view chunk) {
    output.append(chunk.substr(0, kMaxDescription - std::min(kMaxDescription, output.size())));
  });
  const std::string what = binary.filename().string() + " --describe";
  const auto ended = [&child] { return !child.running(); };
  if (wait_children({&child}, std::chrono::steady_clock::now() + kDescribeTimeout, nullptr, ended) !=
      WaitEnd::satisfied) {
    fail("{}: no answer after {} s", what, kDescribeTimeout.count());
  }
  if (!child.succeeded()) {
    const std::vector<std::string> tail = child.tail();
    fail("{}: {}{}", what, child.end_text(), tail.empty() ? "" : ": " + tail.back());
  }
  return parse_benchmark_spec(output, what);
}

}  // namespace verbscope
