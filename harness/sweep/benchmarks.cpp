#include "harness/sweep/benchmarks.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/error.hpp"
#include "harness/process/child.hpp"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kDescribeTimeout{10};
constexpr std::size_t kMaxDescription = 1 << 20;

}  // namespace

std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark) {
  if (std::ranges::find(kBenchmarks, benchmark) == kBenchmarks.end()) {
    fail("no benchmark is called \"{}\"; there are {}", benchmark, fmt::join(kBenchmarks, ", "));
  }
  return folder / benchmark;
}

BenchmarkSpec describe_benchmark(const std::filesystem::path& binary) {
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
