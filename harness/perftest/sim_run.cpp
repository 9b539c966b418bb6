#include <array>
#include <chrono>

#include "common/error.hpp"
#include "common/record.hpp"
#include "harness/perftest/output.hpp"
#include "harness/perftest/runs.hpp"
#include "harness/simulate/simulate.hpp"
#include "microbench/run/sim_profile.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kServer = 0, kClient = 1;  // numbers of programs and of nodes

class PrintedTables final : public SimulationEvents {
 public:
  void printed(std::size_t program, Stream stream, std::string_view chunk) override {
    (stream == Stream::out ? outputs_[program].text : outputs_[program].errors) += chunk;
  }
  const PerftestOutput& of(std::size_t program) const { return outputs_[program]; }

 private:
  std::array<PerftestOutput, 2> outputs_;
};

SimulateRequest request_of(const PerftestOptions& options, const std::vector<std::string>& command_line) {
  SimulateRequest request;
  request.cluster = options.fabric.substr(kSimulatedPrefix.size());
  request.seed = options.seed;
  request.command_line = command_line;
  request.limit = std::chrono::duration_cast<std::chrono::milliseconds>(*options.time_limit);
  for (const std::size_t node : {kServer, kClient}) {
    request.programs.push_back({.node = static_cast<int>(node), .arguments = perftest_command(options)});
  }
  request.programs[kClient].arguments.push_back(fmt::format("node{}", kServer));
  return request;
}

}  // namespace

Outcome run_simulated_perftest(const PerftestOptions& options, const std::vector<std::string>& command_line) {
  Interrupt interrupt;
  const SimProfile source(options.fabric);
  PrintedTables tables;
  Record run = run_programs(request_of(options, command_line), tables, interrupt);
  if (interrupt.pending()) throw InterruptedError("interrupted");
  if (run.status == RecordStatus::failed) {
    fail("{}", failure_text(run.reason, run.result.value("output_tail", std::vector<std::string>{})));
  }
  Outcome outcome;
  // The rate is perftest's. The length of the whole run differs a little from run to run.
  for (const char* key : {"rate_mops", "real_s", "simulated_s"}) run.result.erase(key);
  outcome.result = std::move(run.result);
  add_figures(options.tool, {tables.of(kClient), tables.of(kServer)}, outcome);
  outcome.counters = std::move(run.counters);
  outcome.environment["cluster_profile"] = source.checksum;
  outcome.environment["assumed"] = source.assumed(outcome.counters, outcome.result.value("window_ops", 0.0));
  return outcome;
}

}  // namespace verbscope
