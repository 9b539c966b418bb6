#include "microbench/run/runner.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <utility>

#include "common/cli.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/record.hpp"
#include "common/served.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "microbench/run/call_counter.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/host_fabric.hpp"
#include "microbench/run/record_sink.hpp"
#include "microbench/run/sim_fabric.hpp"
#include "verbs/host_provider.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {

namespace {

// With --all each request with a larger payload is signaled, as in perftest. Otherwise the largest payloads, which take
// milliseconds each, would complete 64 at a time.
constexpr std::uint32_t kMaxUnsignaledPayload = 8192;

constexpr double kMib = 1 << 20;

// Derives the bandwidth from the rate. The side that does not make the rate reports none.
void complete_rate(const Benchmark& benchmark, const Options& options, Record& record) {
  const auto rate = record.result.find("rate_mops");
  if (rate == record.result.end()) return;
  if (!options.host.empty() && benchmark.draft().operation.counted == Side::server && *rate == 0) {
    *rate = nullptr;
    record.result["not_counted"] = "the server counts, its record has the rate";
    return;
  }
  const double payload = record.config.value("size", 0.0);
  if (payload == 0 || !benchmark.moves_payloads()) return;
  const double mb_per_s = rate->get<double>() * payload;  // Mops times bytes
  record.result["bandwidth_gbit_per_s"] = mb_per_s * 8 / 1000;
  record.result["bandwidth_mb_per_s"] = mb_per_s;
}

Record make_record(const Program& program, const Options& options, const OptionTable& table,
                   const std::vector<std::string>& command_line, const Outcome& outcome) {
  Record record;
  record.benchmark = program.describe().name;
  fill_record(record, outcome, table, make_environment(options.fabric, command_line));
  return record;
}

// One line if the rate is that of a single operation, or empty.
std::string no_rate(const Benchmark& benchmark, const Options& options, const Record& record) {
  const bool single = options.iters && benchmark.moves_payloads() && record.result.value("ops", 0ull) == 1;
  return single ? fmt::format("--iters {}: one operation has no rate", *options.iters) : "";
}

// One line if the rate is below a limit, or empty.
std::string missed_limit(const Options& options, const Record& record) {
  const auto rate = record.result.find("rate_mops");
  if (rate == record.result.end() || !rate->is_number()) return "";
  if (options.limit_msgrate && *rate < *options.limit_msgrate) {
    return fmt::format("the rate of {} Mops is below --limit_msgrate {:g}", with_digits(*rate, 3),
                       *options.limit_msgrate);
  }
  if (!options.limit_bw) return "";
  const double reached = options.report_gbits ? record.result.value("bandwidth_gbit_per_s", 0.0)
                                              : record.result.value("bandwidth_mb_per_s", 0.0) * 1e6 / kMib;
  if (reached >= *options.limit_bw) return "";
  return fmt::format("the bandwidth of {} {} is below --limit_bw {:g}", with_digits(reached, 3),
                     options.report_gbits ? "Gb/s" : "MiB/s", *options.limit_bw);
}

// Refuses a limit for a figure that the point does not have.
void check_limits(const Benchmark& benchmark, const Options& options) {
  if (!options.limit_bw) return;
  if (!benchmark.moves_payloads()) {
    fail_usage("--limit_bw {:g}: {} has no bandwidth", *options.limit_bw, benchmark.describe().name);
  }
  if (options.header_only || options.size == 0u) {
    fail_usage("--limit_bw {:g}: without a payload there is no bandwidth", *options.limit_bw);
  }
}

// The figure that --output names, as perftest prints it, if the point has it.
std::optional<double> figure_of(const Options& options, const Record& record) {
  const auto at = [&record](const char* key) {
    const auto found = record.result.find(key);
    return found != record.result.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  };
  const auto times = [](std::optional<double> value, double factor) {
    return value ? std::optional(*value * factor) : value;
  };
  switch (*options.output) {
    case Figure::bandwidth:
      return options.report_gbits ? at("bandwidth_gbit_per_s") : times(at("bandwidth_mb_per_s"), 1e6 / kMib);
    case Figure::message_rate:
      return at("rate_mops");
    case Figure::latency:
      return times(at("lat_mean_ns"), 1e-3);
  }
  return std::nullopt;
}

// The role of a point on the console: the only point, or the first or a further line of a table.
enum class Shown { alone, first, next };

std::string shown_text(const Benchmark& benchmark, const Record& record, Shown shown) {
  if (shown != Shown::alone) {
    return (shown == Shown::first ? table_head(benchmark, record) : "") + table_row(benchmark, record);
  }
  return (benchmark.local() ? "" : summary(benchmark.draft().operation, record)) + benchmark.report(record.result);
}

// `wire`: as in CallCounter.
Outcome run_on_devices(Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider,
                       const std::optional<driver::WireFacts>& wire) {
  std::optional<CallCounter> counter;
  if (asks_for_driver(options.counter_sources)) counter.emplace(provider, wire, true);
  if (options.host.empty()) return ServerFabric(benchmark, options, table, provider).run();
  return ClientFabric(benchmark, options, table, provider).run();
}

int run_point(Program& program, Options& options, const OptionTable& table,
              const std::vector<std::string>& command_line, Shown shown) {
  RecordSink sink(options.out_json_file);
  Outcome outcome;
  const Benchmark* selected = nullptr;
  try {
    Benchmark& benchmark = program.select(options);
    selected = &benchmark;
    check_options(options, program.local());
    check_limits(benchmark, options);
    outcome = run_on_fabric(benchmark, options, table);
  } catch (const std::exception& error) {
    outcome.failure = error.what();
    // The schema of records allows existing fabrics only.
    if (is_fabric(options.fabric)) sink.write(make_record(program, options, table, command_line, outcome));
    throw;
  }
  const Benchmark& benchmark = *selected;
  Record record = make_record(program, options, table, command_line, outcome);
  complete_rate(benchmark, options, record);
  if (record.status == RecordStatus::ok) record.reason = no_rate(benchmark, options, record);
  if (record.status == RecordStatus::ok && record.reason.empty()) record.reason = missed_limit(options, record);
  if (!record.reason.empty()) record.status = RecordStatus::failed;
  sink.write(record);
  if (!record.reason.empty()) throw Error(record.reason);
  if (sink.to_stdout()) return 0;
  if (!options.output) {
    print_text(stdout, shown_text(benchmark, record, shown));
  } else if (const auto figure = figure_of(options, record)) {
    print_format(stdout, "{:f}\n", *figure);
  } else {
    warn("--output: this side or this benchmark does not have this figure");
  }
  return 0;
}

constexpr const char* kUnits =
    "BYTES: 64, 4k, 2M, 1G (k is 1024). TIME: 500us, 2ms, 3 (seconds). WORD: upper or lower case.";

std::string examples(const Description& it, bool local) {
  if (local) return fmt::format("Example:\n  {} {}\n{}", it.name, it.example, kUnits);
  return fmt::format(
      "Examples:\n"
      "  {0} --fabric sim:cib {1}\n"
      "  {0} -d mlx5_0 {1}\n"
      "  {0} -d mlx5_0 {1} HOST\n"
      "The first command simulates. For devices, run the second on HOST, the server, then the third on the client.\n"
      "{2}",
      it.name, it.example, kUnits);
}

// Runs the points of --all, with a record each, or the only point.
int run_points(Program& program, Options& options, const OptionTable& table,
               const std::vector<std::string>& command_line) {
  const std::vector<std::uint32_t> sizes = program.points(options);
  if (sizes.empty()) return run_point(program, options, table, command_line, Shown::alone);
  const Options given = options;
  Shown shown = Shown::first;
  for (const std::uint32_t size : sizes) {
    options = given;
    options.size = size;
    if (!options.cq_mod && size > kMaxUnsignaledPayload) options.cq_mod = 1;
    run_point(program, options, table, command_line, std::exchange(shown, Shown::next));
  }
  return 0;
}

int run_with_arguments(Program& program, int argc, char** argv) {
  const std::vector<std::string> command_line(argv, argv + argc);
  const Description description = program.describe();
  const bool local = program.local();
  CLI::App app(description.summary);
  Options options;
  OptionTable table(app);
  if (local) {
    add_local_options(table, options);
  } else {
    add_common_options(table, options);
  }
  table.group("Options of this benchmark");
  program.options(table);
  bool describe = false;
  app.add_flag("--describe", describe, "print the options as JSON and end")->group("Help");
  if (!local) {
    app.add_option("host", options.host, "name or address of the server; without it, this process is the server")
        ->check([](const std::string& host) {
          return host.empty() ? std::string("expected the name or address of the server, got an empty word")
                              : std::string();
        });
  }
  app.footer(examples(description, local));
  parse_args(app, argc, argv);
  if (describe) {
    Json described = table.describe(description.name, description.summary, description.example);
    described["serves"] = true;
    print_format(stdout, "{}\n", dump_json(described));
    return 0;
  }
  if (options.out_json && options.out_json_file.empty())
    options.out_json_file = "perftest_out.json";  // perftest's name
  if (!is_simulated(options.fabric)) TscClock::calibrate();
  return run_points(program, options, table, command_line);
}

}  // namespace

Outcome run_on_fabric(Benchmark& benchmark, const Options& options, const OptionTable& table) {
  if (is_simulated(options.fabric)) return SimFabric(benchmark, options).run();
  if (options.fabric == "verbs") {
    HostProvider provider;
    return run_on_devices(benchmark, options, table, provider, std::nullopt);
  }
  if (options.validate) fail_usage("--validate: the null device moves no bytes");
  NullProvider provider;
  return run_on_devices(benchmark, options, table, provider, driver::usual_facts(NicFamily::mlx5, true));
}

int benchmark_main(const std::function<std::unique_ptr<Program>()>& make, int argc, char** argv) {
  return run_or_serve(make()->describe().name.c_str(), argc, argv,
                      [&make](int count, char** arguments) { return run_with_arguments(*make(), count, arguments); });
}

}  // namespace verbscope
