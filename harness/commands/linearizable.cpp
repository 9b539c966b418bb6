// `verbscope linearizable`: checks recorded histories of a replicated store.
#include "systems/history/linearizable.hpp"

#include <memory>

#include "common/terminal.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {

namespace {

std::string summary(const HistoryCheck& check) {
  return fmt::format("{} clients, {} keys, {} GETs, {} PUTs, {} without an answer: {}", check.clients, check.keys,
                     check.gets, check.puts, check.unknown,
                     check.linearizable()
                         ? "linearizable"
                         : fmt::format("not linearizable: {} of {} keys", check.violations.size(), check.keys));
}

}  // namespace

Action add_linearizable(CLI::App& command) {
  command.description("check that histories of clients, such as those of raft_kv, are linearizable");
  auto paths = std::make_shared<std::vector<std::string>>();
  command.add_option("history", *paths, "files of the clients of one run, checked as one history")
      ->required()
      ->type_name("FILE");
  command.footer(
      "Example:\n  verbscope linearizable client1.jsonl client2.jsonl\n"
      "Exit status: 1 if no order of the operations explains all answers (stdout has one line per key); else 0.");
  return [paths] {
    const HistoryCheck check = check_linearizable(read_histories(*paths, warn));
    for (const HistoryViolation& violation : check.violations) print_format(stdout, "{}\n", violation.text);
    print_format(stdout, "{}\n", summary(check));
    return check.linearizable() ? 0 : 1;
  };
}

}  // namespace verbscope
