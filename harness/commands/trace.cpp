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
    constexpr Picos kMin = std::chrono::milliseconds(100);
    if (every < kMin) fail_usage("--every {}: expected at least 100ms", options.every);
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
      "report what a libibverbs program posts and polls, and its PCIe cost: verbscope trace [options] -- PROGRAM ...");
  command.footer("Example:\n  verbscope trace --nic mlx5 -- ib_write_bw -n 1000 server");
  auto options = std::make_shared<TraceOptions>();
  command.add_option("--json", options->request.json, "append records here")->type_name("FILE");
  command
      .add_option("--every", options->every,
                  "report also at this interval while the program runs, such as 1s; SIGUSR1 triggers one report")
      ->type_name("TIME");
  command
      .add_option(
          "--nic", options->request.nic,
          "adapter family for which costs are computed: mlx5, mlx4, or auto for the device's own (default auto)")
      ->type_name("WORD")
      ->check(CLI::IsMember({"auto", "mlx5", "mlx4"}));
  command
      .add_option("--cluster", options->request.cluster,
                  "cluster whose costs the findings use (default: cib for mlx5, cx3 for mlx4)")
      ->type_name("NAME");
  command.add_flag("--verify", options->request.verify,
                   "compare each WQE in its queue's memory with the WQE computed from its request (mlx5, mlx4)");
  command.add_option("program", options->request.arguments, "the program and its arguments, after --")->required();
  return [options] { return run_trace(*options); };
}

}  // namespace verbscope
