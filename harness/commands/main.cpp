// verbscope: sweeps of the benchmarks, and what their records say.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {
namespace {

int body(int argc, char** argv) {
  CLI::App app{"verbscope: what RDMA verbs cost on PCIe, measured, simulated and modelled"};
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const Command& each : all_commands()) {
    CLI::App* const command = app.add_subcommand(each.name);
    commands.emplace_back(command, each.add(*command));
  }
  const auto named = [&](const auto& each) { return each.first->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands, named)) {
    fail_usage("no command is called \"{}\"; --help lists them", argv[1]);
  }
  parse_args(app, argc, argv);
  for (const auto& [command, action] : commands) {
    if (command->parsed()) return action();
  }
  return 0;
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::run_main("verbscope", argc, argv, verbscope::body);
}
