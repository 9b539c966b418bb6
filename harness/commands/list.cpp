// `verbscope list`: the benchmarks, the clusters, the sweeps, a line each; the options of one benchmark.
#include <fmt/ranges.h>

#include <memory>

#include "common/help.hpp"
#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "common/words.hpp"
#include "harness/commands/command.hpp"
#include "harness/process/text_file.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kNameColumn = 22;

// An entry; on a terminal the text stays in its column.
void print_line(std::FILE* out, const std::string& indent, const std::string& name, const std::string& text) {
  const std::size_t width = terminal_width(out);
  const std::size_t room = width > 2 * kNameColumn ? width - kNameColumn - 1 : 0;
  std::string before = fmt::format("{:<{}}", indent + name, kNameColumn);
  for (const std::string& line : wrap_words(text, room)) {
    print_format(out, "{} {}\n", before, line);
    before = std::string(kNameColumn, ' ');
  }
}

void list_benchmark(const std::filesystem::path& folder, const std::string& name, std::FILE* out) {
  print_line(out, "  ", name, describe_benchmark(benchmark_binary(folder, name)).summary);
}

// The options of one benchmark that a sweep may set.
int show_benchmark(const std::filesystem::path& folder, const std::string& name, std::FILE* out) {
  const BenchmarkSpec spec = describe_benchmark(benchmark_binary(folder, name));
  HelpPage page{spec.summary, "", {}, ""};
  for (const OptionSpec& option : spec.options) {
    if (is_reserved_option(option.name)) continue;
    const OptionWords words{to_string(option.type), option.default_value, option.allowed};
    if (page.groups.empty() || page.groups.back().title != option.group) page.groups.push_back({option.group, {}});
    page.groups.back().entries.push_back({fmt::format("{} {}", option.name, value_name(words)),
                                          entry_text(option.help, allowed_text(words), default_text(words))});
  }
  page.footer = fmt::format(
      "A sweep sets them by these names (docs/sweeps.md); on the command line they are --NAME.\n"
      "`{0} --help` has the short ones too. Example: {1}",
      name, spec.example_line());
  const std::size_t width = terminal_width(out);
  print_own_text(out, render(page, width == 0 ? kHelpWidth : width, shows_colours(out)));
  return 0;
}

void list_cluster(const std::string& name, std::FILE* out) {
  const std::filesystem::path path = find_config("clusters", name);
  const Json profile = read_json_file(path);
  JsonFields fields(profile, path.string());
  print_line(out, "  sim:", name, fields.optional<std::string>("description", ""));
}

void list_sweep(const std::string& name, std::FILE* out) {
  const std::filesystem::path path = find_config("sweeps", name);
  const Sweep sweep = parse_sweep(read_text_file(path), path.string());
  print_line(out, "  ", name,
             fmt::format("{}, {}: {}", fmt::join(sweep.benchmarks, ", "),
                         sweep.fabrics.empty() ? "any fabric" : fmt::format("{}", fmt::join(sweep.fabrics, ", ")),
                         sweep.description));
}

// Shows one entry; its error takes the place of what cannot be shown.
template <class Show>
void guarded(const std::string& name, std::FILE* out, Show show) {
  try {
    show();
  } catch (const Error& error) {
    print_format(out, "  {}: {}\n", name, error.what());
  }
}

// An entry that is broken (a benchmark that is not built, a sweep that does not parse) has its reason on its line.
int list_all(const std::filesystem::path& folder, std::FILE* out) {
  print_format(out, "benchmarks (`verbscope list NAME` has the options of one)\n");
  for (const std::string& name : benchmark_names()) guarded(name, out, [&] { list_benchmark(folder, name, out); });
  print_format(out, "\nsimulated clusters\n");
  for (const std::string& name : list_configs("clusters")) guarded(name, out, [&] { list_cluster(name, out); });
  print_format(out, "\nsweeps\n");
  for (const std::string& name : list_configs("sweeps")) guarded(name, out, [&] { list_sweep(name, out); });
  return 0;
}

}  // namespace

Action add_list(CLI::App& command) {
  command.description("benchmarks, clusters, sweeps");
  auto name = std::make_shared<std::string>();
  command.add_option("benchmark", *name, "one of them: its options");
  command.footer("Example:\n  verbscope list send_rate");
  return [name] {
    if (name->empty()) return list_all(program_folder(), stdout);
    const std::vector<std::string> names = benchmark_names();
    return show_benchmark(program_folder(), parse_word(*name, "benchmark", names), stdout);
  };
}

}  // namespace verbscope
