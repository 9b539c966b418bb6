#include "harness/sweep/load_sweep.hpp"

#include "common/paths.hpp"
#include "harness/process/text_file.hpp"
#include "harness/sweep/benchmarks.hpp"

namespace verbscope {
namespace {

void apply_setting(LoadedSweep& loaded, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) fail("--set: expected key=value, got \"{}\"", setting);
  const std::string key = option_name(setting.substr(0, equals));
  if (is_reserved_option(key)) fail("--set: \"{}\" is set by the harness", key);
  const BenchmarkSpec& spec = loaded.specs.begin()->second;  // check_sweep asks the others
  const OptionSpec& option = spec.require(key, "--set");
  override_key(loaded.sweep, key, option_value_from_text(option, setting.substr(equals + 1), "--set"));
}

// A mistake in the words of the command line is one of usage, other than one in the file.
void apply_set(LoadedSweep& loaded, const std::vector<std::string>& settings) {
  try {
    for (const std::string& setting : settings) apply_setting(loaded, setting);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

LoadedSweep load_sweep(const LoadOptions& options, const std::filesystem::path& folder) {
  const std::filesystem::path path = find_config("sweeps", options.sweep);
  LoadedSweep loaded{.sweep = parse_sweep(read_text_file(path), path.string()), .specs = {}};
  for (const std::string& benchmark : loaded.sweep.benchmarks) {
    loaded.specs.emplace(benchmark, describe_benchmark(benchmark_binary(folder, benchmark)));
  }
  apply_set(loaded, options.set);
  if (options.seed) loaded.sweep.seed = *options.seed;
  if (options.repetitions) loaded.sweep.repetitions = *options.repetitions;
  for (const auto& [name, spec] : loaded.specs) check_sweep(loaded.sweep, spec);
  return loaded;
}

}  // namespace verbscope
