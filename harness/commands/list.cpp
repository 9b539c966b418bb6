// `verbscope list`: the benchmarks with their options, the clusters, the sweeps.
#include <fmt/ranges.h>

#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/process/text_file.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {
namespace {

std::string default_text(const OptionSpec& option) {
  return option.default_value.is_null() ? "" : fmt::format(" [{}]", dump_json(option.default_value));
}

void list_benchmark(const std::filesystem::path& folder, const std::string& name, std::FILE* out) {
  const BenchmarkSpec spec = describe_benchmark(benchmark_binary(folder, name));
  print_format(out, "  {}\n", name);
  for (const OptionSpec& option : spec.options) {
    if (is_reserved_option(option.name)) continue;
    print_format(out, "    {:<16} {:<9} {}{}\n", option.name, to_string(option.type), option.help,
                 default_text(option));
  }
}

void list_cluster(const std::string& name, std::FILE* out) {
  const std::filesystem::path path = find_config("clusters", name);
  const Json profile = read_json_file(path);
  JsonFields fields(profile, path.string());
  print_format(out, "  sim:{:<12} {}\n", name, fields.optional<std::string>("description", ""));
}

void list_sweep(const std::string& name, std::FILE* out) {
  const std::filesystem::path path = find_config("sweeps", name);
  const Sweep sweep = parse_sweep(read_text_file(path), path.string());
  print_format(out, "  {:<16} {}, {}: {}\n", name, fmt::join(sweep.benchmarks, ", "),
               sweep.fabrics.empty() ? "any fabric" : fmt::format("{}", fmt::join(sweep.fabrics, ", ")),
               sweep.description);
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
  print_format(out, "benchmarks, with the options that a sweep may set [default]\n");
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
  return [] { return list_all(program_folder(), stdout); };
}

}  // namespace verbscope
