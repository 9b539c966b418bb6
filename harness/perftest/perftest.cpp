// `perftest`: a program of perftest as a benchmark, between two machines or on a simulated cluster.
#include <CLI/CLI.hpp>
#include <array>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/terminal.hpp"
#include "harness/perftest/options.hpp"
#include "harness/perftest/runs.hpp"
#include "harness/process/child.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/record_sink.hpp"

namespace verbscope {
namespace {

constexpr const char* kName = "perftest";
constexpr const char* kSummary =
    "Rate or latency as perftest measures it: runs one of its programs on a server and on a client.";
constexpr const char* kExample = "--tool ib_write_bw -s 64 --iters 1000";

// Options in which the two sides may differ.
constexpr std::array kOwnOptions{"fabric", "ib_dev",    "gid_index",    "clients", "seed",
                                 "port",   "timeout_s", "time_limit_s", "cores"};

void require_tool(const std::string& tool) {
  try {
    find_program(tool);
  } catch (const Error& error) {
    fail("{}; install the package perftest", error.what());
  }
}

Outcome run_perftest(const PerftestOptions& options, const OptionTable& table,
                     const std::vector<std::string>& command_line) {
  check_perftest_options(options);
  require_tool(options.tool);
  if (is_simulated(options.fabric)) return run_simulated_perftest(options, command_line);
  Json parameters = table.values();
  for (const char* option : kOwnOptions) parameters.erase(option);
  return run_perftest_on_host(options, parameters);
}

std::string summary(const PerftestOptions& options, const Record& record) {
  const double size = record.config.value("size", 0.0);
  return fmt::format(
      "{} on {}: {} {}, {} B\n  {}\n{}", kName, options.fabric, options.tool, options.connection, size,
      rate_text(record.result.value("rate_mops", 0.0), "", size, is_simulated(options.fabric) ? kSimulatedLabel : ""),
      latency_line(record.result));
}

int run_with_arguments(int argc, char** argv) {
  const std::vector<std::string> command_line(argv, argv + argc);
  CLI::App app(kSummary);
  PerftestOptions options;
  OptionTable table(app);
  add_perftest_options(table, options);
  bool list_options = false;
  app.add_flag("--describe", list_options, "print the options as JSON and end")->group("Help");
  app.add_option("host", options.host, "name or address of the server; without it, this process is the server");
  app.footer(
      fmt::format("Examples:\n  {0} --fabric sim:cib {1}\n  {0} -d mlx5_0 {1}\n  {0} -d mlx5_0 {1} HOST\n"
                  "The first command simulates. For devices, run the second on HOST, then the third.\n"
                  "Options are passed on to perftest, whose defaults apply.",
                  kName, kExample));
  parse_args(app, argc, argv);
  if (list_options) {
    print_text(stdout, dump_json(table.describe(kName, kSummary, kExample)) + "\n");
    return 0;
  }
  RecordSink sink(options.out_json_file);
  const Record record = run_recorded(sink, {kName, options.fabric, table, command_line},
                                     [&] { return run_perftest(options, table, command_line); });
  if (!sink.to_stdout()) print_text(stdout, summary(options, record));
  return 0;
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::run_main(verbscope::kName, argc, argv, verbscope::run_with_arguments);
}
