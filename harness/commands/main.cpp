// verbscope: runs sweeps of the benchmarks and evaluates their records.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/text.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {
namespace {

void check_command(const std::string& word, const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::ranges::find(names, word) != names.end()) return;
  const std::string meant = did_you_mean(word, names);
  fail_usage("unknown command \"{}\"{}", word, meant.empty() ? "; --help lists them" : meant);
}

int body(int argc, char** argv) {
  CLI::App app{"verbscope: measures, simulates and models the PCIe cost of RDMA verbs"};
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const Command& each : all_commands()) {
    CLI::App* const command = app.add_subcommand(each.name);
    commands.emplace_back(command, each.add(*command));
  }
  app.footer(
      "Examples:\n"
      "  verbscope run quickstart --hosts sim:cib\n"
      "  verbscope compare results/local/quickstart.jsonl\n"
      "`verbscope COMMAND --help` describes a command; `verbscope list` lists benchmarks and sweeps.");
  if (argc > 1 && argv[1][0] != '-') check_command(argv[1], app);
  parse_args(app, argc, argv);
  for (const auto& [command, action] : commands) {
    if (command->parsed()) return action();
  }
  fail_usage("expected a command; --help lists them");
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::run_main("verbscope", argc, argv, verbscope::body);
}
