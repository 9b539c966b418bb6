// `verbscope simulate`: other people's RDMA programs, unmodified, on a simulated cluster.
#include <algorithm>
#include <limits>
#include <memory>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/option_values.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"
#include "harness/simulate/console.hpp"

namespace verbscope {
namespace {

struct SimulateOptions {
  SimulateRequest request;
  SimulateOutput output;
  std::vector<std::string> words;
  std::string limit, silence, start_gap;
};

int run_simulate(SimulateOptions& options) {
  SimulateRequest& request = options.request;
  check_cluster(request.cluster);
  request.programs = parse_programs(options.words);
  if (!options.limit.empty()) {
    request.limit =
        std::chrono::duration_cast<std::chrono::milliseconds>(parse_duration(options.limit, "--time_limit"));
    if (request.limit->count() < 1) fail_usage("--time_limit {}: expected at least 1ms", options.limit);
  }
  if (!options.silence.empty()) {
    request.silence =
        std::chrono::duration_cast<std::chrono::nanoseconds>(parse_duration(options.silence, "--silence"));
    constexpr std::chrono::microseconds kLeast{20};
    if (request.silence < kLeast) fail_usage("--silence {}: expected at least 20us", options.silence);
  }
  if (!options.start_gap.empty()) request.start_gap = parse_duration(options.start_gap, "--start_gap");
  request.command_line = {"verbscope", "simulate"};
  request.command_line.insert(request.command_line.end(), options.words.begin(), options.words.end());
  return simulate_programs(request, options.output);
}

}  // namespace

Action add_simulate(CLI::App& command) {
  command.description(
      "run libibverbs programs, unmodified, on a simulated cluster: verbscope simulate [options] -- PROGRAM ... :: "
      "PROGRAM ...");
  command.footer(
      "Each program finds a device sim0 and, by the names node0, node1 and so on, the other nodes. \"::\" parts the\n"
      "programs, which are on nodes 0, 1 and so on, unless @NODE stands in front of one; @NODE:FOLDER and NAME=value\n"
      "set its working folder and environment.\n"
      "Example:\n  verbscope simulate --cluster cx3 -- ib_write_lat -d sim0 :: ib_write_lat -d sim0 node0");
  auto options = std::make_shared<SimulateOptions>();
  SimulateRequest& request = options->request;
  command
      .add_option("--cluster", request.cluster, "cluster to simulate: a name or the path of a profile (default cib)")
      ->type_name("NAME");
  command.add_option("--nodes", request.nodes, "number of nodes (default: as many as the programs are on)")
      ->type_name("N")
      ->transform(whole_number(1, 256));
  command.add_option("--seed", request.seed, "seed of the simulation's random numbers (default 1)")
      ->type_name("N")
      ->transform(whole_number(0, std::numeric_limits<std::int64_t>::max()));
  command.add_option("--time_limit", options->limit, "end the programs after this real time, such as 2m")
      ->type_name("TIME");
  command.add_option("--output", options->output.folder, "write the output of each node to a file in this folder")
      ->type_name("FOLDER");
  command.add_option("--json", options->output.json, "append a record of the run here")->type_name("FILE");
  command
      .add_option("--silence", options->silence,
                  "take a thread that computes for this long without a call for one that watches memory (default 2ms)")
      ->type_name("TIME");
  command
      .add_option("--start_gap", options->start_gap,
                  "start the programs of each node by this virtual time after those of the node before (default 100ms)")
      ->type_name("TIME");
  command.add_option("programs", options->words, "the programs and their arguments, after --");
  return [options] { return run_simulate(*options); };
}

}  // namespace verbscope
