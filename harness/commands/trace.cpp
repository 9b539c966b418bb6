// `verbscope trace`: measures the cost of an RDMA program from inside its process.
#include "harness/trace/trace.hpp"

#include <memory>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {
namespace {

struct TraceOptions {
  TraceRequest request;
  std::string every;
};

int run_trace(TraceOptions& options) {
  if (!options.every.empty()) {
    const Picos every = parse_duration(options.every, "--every");
    constexpr Picos kLeast = std::chrono::milliseconds(100);
    if (every < kLeast) fail_usage("--every {}: at least 100ms", options.every);
    options.request.every = std::chrono::duration_cast<std::chrono::milliseconds>(every);
  }
  check_cluster(options.request.cluster);
  options.request.command_line = {"verbscope", "trace"};
  for (const std::string& word : options.request.arguments) options.request.command_line.push_back(word);
  return trace(options.request);
}

}  // namespace

Action add_trace(CLI::App& command) {
  command.description(
      "what a program of verbs posts, polls and costs on PCIe: verbscope trace [options] -- PROGRAM ...");
  command.footer("Example:\n  verbscope trace --nic mlx5 -- ib_write_bw -n 1000 server");
  auto options = std::make_shared<TraceOptions>();
  command.add_option("--json", options->request.json, "append records here")->type_name("FILE");
  command
      .add_option("--every", options->every, "tell also so often while the program runs (1s); SIGUSR1 asks for it once")
      ->type_name("TIME");
  command
      .add_option("--nic", options->request.nic,
                  "auto, mlx5 or mlx4: the adapters that costs are reckoned for (auto: the device's own)")
      ->type_name("WORD")
      ->check(CLI::IsMember({"auto", "mlx5", "mlx4"}));
  command
      .add_option("--cluster", options->request.cluster,
                  "the cluster whose costs findings are reckoned with (by the adapter: cib or cx3)")
      ->type_name("NAME");
  command.add_flag("--verify", options->request.verify,
                   "compare each WQE in the memory of its queue with what is reckoned of its request (mlx5, mlx4)");
  command.add_option("program", options->request.arguments, "the program and its arguments, after --")->required();
  return [options] { return run_trace(*options); };
}

}  // namespace verbscope
