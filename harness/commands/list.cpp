// `verbscope list`: lists benchmarks, clusters and sweeps, one per line, or the options of one benchmark.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "common/files.hpp"
#include "common/help.hpp"
#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "harness/commands/command.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/load_sweep.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kNameColumn = 22;

// Prints an entry. On a terminal, the text is wrapped within its column.
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

// Prints the options of one benchmark that a sweep may set.
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

// Prints the cluster's parameters, with the source of each.
int show_cluster(const std::string& name, std::FILE* out) {
  const std::filesystem::path path = find_config("clusters", name);
  const Json profile = read_json_file(path);
  print_format(out, "sim:{}: {}\n", name, profile.value("description", ""));
  for (const auto& [section, parameters] : profile.items()) {
    if (!parameters.is_object()) continue;
    print_format(out, "\n{}\n", section);
    for (const auto& [key, parameter] : parameters.items()) {
      if (!parameter.is_object() || !parameter.contains("value")) continue;
      print_format(out, "  {:<40} {:>12}  {}\n", key, dump_json(parameter.at("value")), parameter.value("source", ""));
    }
  }
  print_format(out, "\n{} gives the source of each value. Example: verbscope run quickstart --hosts sim:{}\n",
               path.string(), name);
  return 0;
}

std::string options_text(const Json& params) {
  std::vector<std::string> words;
  for (const auto& [key, value] : params.items()) words.push_back(option_argument(key, value).substr(2));
  return fmt::format("{}", fmt::join(words, " "));
}

// Prints what the sweep runs, and on which fabrics.
int show_sweep(const std::filesystem::path& folder, const std::string& name, std::FILE* out) {
  const Sweep sweep = load_sweep({.sweep = name, .seed = {}, .repetitions = {}, .set = {}, .vary = {}}, folder);
  print_format(out, "{}: {}\n\n", name, sweep.description);
  print_line(out, "", "benchmark", fmt::format("{}", fmt::join(sweep.benchmarks, ", ")));
  print_line(out, "", "fabrics", sweep.fabrics.empty() ? "any" : fmt::format("{}", fmt::join(sweep.fabrics, ", ")));
  if (!sweep.figure.empty()) print_line(out, "", "figure", sweep.figure);
  if (!sweep.fixed.empty()) print_line(out, "", "fixed", options_text(sweep.fixed));
  for (const auto& [fabric, params] : sweep.fixed_on) print_line(out, "", "fixed on " + fabric, options_text(params));
  for (const SweepPoint& point : sweep.points) {
    const std::string where = point.fabrics.empty() ? "" : fmt::format(" [{}]", fmt::join(point.fabrics, ", "));
    print_line(out, "", "point",
               options_text(point.overrides) + where + (point.label.empty() ? "" : " " + point.label));
  }
  for (const auto& [key, values] : sweep.vary) {
    Json each = values;
    print_line(out, "", "vary", fmt::format("{} {}", key, dump_json(each)));
  }
  const std::vector<std::string> places = fabrics_without_hosts(sweep);
  for (const std::string& place : places) {
    print_line(out, "", place, fmt::format("{} points", expand_sweep(sweep, place).size()));
  }
  print_format(out, "\nExample: verbscope run {}{}\n", name, places.empty() ? " --hosts sim:cib" : "");
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

// Prints one entry, or in its place the error.
template <class Show>
void guarded(const std::string& name, std::FILE* out, Show show) {
  try {
    show();
  } catch (const Error& error) {
    print_format(out, "  {}: {}\n", name, error.what());
  }
}

// Prints all entries. The line of a broken entry (a benchmark that is not built, an invalid sweep) has the reason.
int list_all(const std::filesystem::path& folder, std::FILE* out) {
  print_format(out, "benchmarks (`verbscope list NAME` shows one of these names)\n");
  for (const std::string& name : benchmark_names()) guarded(name, out, [&] { list_benchmark(folder, name, out); });
  print_format(out, "\nsimulated clusters\n");
  for (const std::string& name : list_configs("clusters")) guarded(name, out, [&] { list_cluster(name, out); });
  print_format(out, "\nsweeps\n");
  for (const std::string& name : list_configs("sweeps")) guarded(name, out, [&] { list_sweep(name, out); });
  return 0;
}

// Prints a benchmark, a cluster (with or without "sim:"), or a sweep; the first with this name in that order.
int show(const std::filesystem::path& folder, const std::string& name, std::FILE* out) {
  const std::vector<std::string> benchmarks = benchmark_names(), clusters = list_configs("clusters");
  const auto same = [&name](const std::string& known) { return same_word(known, name); };
  if (const auto found = std::ranges::find_if(benchmarks, same); found != benchmarks.end()) {
    return show_benchmark(folder, *found, out);
  }
  const std::string cluster = name.starts_with("sim:") ? name.substr(4) : name;
  if (name != cluster || std::ranges::find(clusters, cluster) != clusters.end()) return show_cluster(cluster, out);
  std::vector<std::string> both = benchmarks;
  both.insert(both.end(), clusters.begin(), clusters.end());
  const std::vector<std::string> sweeps = list_configs("sweeps");
  if (std::ranges::find(sweeps, name) == sweeps.end()) {
    if (const std::string meant = did_you_mean(name, both); !meant.empty()) {
      fail_usage("no benchmark, cluster or sweep is called \"{}\"{}", name, meant);
    }
  }
  return show_sweep(folder, name, out);
}

}  // namespace

Action add_list(CLI::App& command) {
  command.description("list benchmarks, clusters and sweeps, or describe one");
  auto name = std::make_shared<std::string>();
  command.add_option("name", *name,
                     "a benchmark (prints its options), a cluster (its parameters) or a sweep (its points)");
  command.footer("Examples:\n  verbscope list send_rate\n  verbscope list cib\n  verbscope list send_grid");
  return [name] { return name->empty() ? list_all(program_folder(), stdout) : show(program_folder(), *name, stdout); };
}

}  // namespace verbscope
