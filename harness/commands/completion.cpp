// `verbscope completion`: prints a bash completion script, made from the descriptions of the programs.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/sweep/benchmarks.hpp"

namespace verbscope {
namespace {

// Completions by the preceding words: "verbscope run", "send_rate --connection".
using Words = std::map<std::string, std::vector<std::string>>;

void add_options(const CLI::App& app, const std::string& place, Words& words) {
  std::vector<std::string>& own = words[place];
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) own.push_back("--" + name);
  }
}

// Adds `verbscope` and its subcommands.
void add_commands(const CLI::App& app, Words& words) {
  add_options(app, "verbscope", words);
  for (const CLI::App* command : app.get_subcommands({})) {
    words["verbscope"].push_back(command->get_name());
    add_options(*command, "verbscope " + command->get_name(), words);
  }
  const auto add_all = [&words](const char* place, const std::vector<std::string>& names) {
    std::ranges::copy(names, std::back_inserter(words[place]));
  };
  add_all("verbscope list", benchmark_names());
  add_all("verbscope run", list_configs("sweeps"));
  words["verbscope predict --cluster"] = list_configs("clusters");
}

void add_benchmark(const BenchmarkSpec& spec, Words& words) {
  std::vector<std::string>& own = words[spec.name];
  own = {"--help", "--version", "--describe"};
  for (const OptionSpec& option : spec.options) {
    own.push_back("--" + option.name);
    if (!option.allowed.is_array()) continue;
    words[spec.name + " --" + option.name] = option.allowed.get<std::vector<std::string>>();
  }
}

// Words are names of files and options, without quotes.
std::string script(const Words& words) {
  std::string out = "# Words that bash completes after verbscope and its benchmarks; made by `verbscope completion`.\n";
  out += "declare -gA _verbscope_words=(\n";
  for (const auto& [place, next] : words) out += fmt::format("  ['{}']='{}'\n", place, fmt::join(next, " "));
  out += ")\n";
  out += R"(_verbscope() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} place=${COMP_WORDS[0]##*/}
  if [[ $place == verbscope ]] && ((COMP_CWORD > 1)); then place+=" ${COMP_WORDS[1]}"; fi
  local next=${_verbscope_words["$place $previous"]-}
  # After an option whose value is not one of a list, files are completed.
  if [[ -z $next && ($previous != --* || $current == -*) ]]; then next=${_verbscope_words["$place"]-}; fi
  mapfile -t COMPREPLY < <(compgen -W "$next" -- "$current")
}
)";
  return out + fmt::format("complete -o default -F _verbscope verbscope {}\n", fmt::join(benchmark_names(), " "));
}

}  // namespace

Action add_completion(CLI::App& command) {
  command.description("print a completion script for bash");
  command.footer("Example:\n  verbscope completion > ~/.local/share/bash-completion/completions/verbscope");
  return [&command] {
    Words words;
    add_commands(*command.get_parent(), words);
    for (const std::string& name : benchmark_names()) {
      add_benchmark(describe_benchmark(benchmark_binary(program_folder(), name)), words);
    }
    print_format(stdout, "{}", script(words));
    return 0;
  };
}

}  // namespace verbscope
