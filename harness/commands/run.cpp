// `verbscope run`: runs all points of a sweep and writes one record each.
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/cli.hpp"
#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "harness/cluster/hold.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/point/run_sweep.hpp"

namespace verbscope {
namespace {

// Options whose text is parsed after all options are known.
struct RunTexts {
  std::string timeout, silence, connect_timeout, share;
};

std::chrono::milliseconds duration_of(const std::string& text, const char* option) {
  const Picos time = parse_duration(text, option);
  if (time < std::chrono::milliseconds(1)) fail_usage("{}: expected at least 1 ms, got \"{}\"", option, text);
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}

void read_texts(const RunTexts& texts, RunOptions& run) {
  if (!texts.timeout.empty()) run.limits.timeout = duration_of(texts.timeout, "--timeout");
  if (!texts.silence.empty()) run.limits.silence = duration_of(texts.silence, "--silence");
  if (!texts.connect_timeout.empty()) {
    run.launcher.connect_timeout =
        std::chrono::ceil<std::chrono::seconds>(duration_of(texts.connect_timeout, "--connect_timeout"));
  }
  if (run.limits.silence < 2 * kHoldBeat) {
    fail_usage("--silence: expected at least {} s: hosts send a message every {} s", 2 * kHoldBeat.count(),
               kHoldBeat.count());
  }
  if (!texts.share.empty()) run.share = parse_share(texts.share);
}

void add_cluster_options(CLI::App& command, RunOptions& run, RunTexts& texts) {
  add_launcher(command, run.launcher, kAnyLauncher);
  command.add_option("--connect_timeout", texts.connect_timeout, "time limit for connecting by ssh")
      ->default_str("10s");
  command.add_option("--silence", texts.silence, "give up a host that is silent for this long")->default_str("15s");
  command.add_option("--port", run.port, "TCP port of the server's exchange (default: the system picks)")
      ->transform(whole_number(0, 65535));
  command.add_option("--array", run.array, "submit the sweep to Slurm as a job array of this many tasks")
      ->transform(whole_number(1, 1000));
  command.add_option("--sbatch", run.sbatch, "further argument of sbatch; may be repeated")->allow_extra_args(false);
  command.add_option("--points", run.points,
                     "run only the points whose identities (config.point) are lines of this file");
  command.add_option("--share", texts.share, "run only the points I, I+N, I+2N ... of the sweep, counted from 0: I/N");
}

}  // namespace

Action add_run(CLI::App& command) {
  command.description("run every point of a sweep, one record each");
  command.footer(
      "Examples:\n  verbscope run send_grid --hosts sim:cib --set size=4k\n  verbscope run send_grid --hosts hosts.txt "
      "--resume\n  verbscope run read_rate,write_rate,send_rate --hosts sim:cib --set direction=in --vary "
      "size=16,64,256");
  struct Options {
    RunOptions run;
    RunTexts texts;
  };
  auto options = std::make_shared<Options>();
  RunOptions& run = options->run;
  command
      .add_option("sweep", run.sweep,
                  "a sweep file, a name in configs/sweeps, or benchmarks to --vary (read_rate,write_rate,send_rate)")
      ->required();
  command
      .add_option("--hosts", run.hosts,
                  "where to run: sim:NAME, or several (sim:cib,sim:cx3), null, host (this machine, for benchmarks "
                  "without peers), slurm, localhost, a hosts file, or host names (node1,node2)")
      ->default_str("the sweep's \"fabrics\"");
  command.add_option("--out", run.out, "append records here")->default_str("results/local/SWEEP.jsonl");
  CLI::Option* const resume = command.add_flag("--resume", run.resume, "skip points that are ok in the results file");
  command.add_flag("--append", run.append, "run again the points that are in the results file")->excludes(resume);
  command.add_option("--seed", run.seed, "seed of the first repetition (default: the sweep's)")
      ->transform(whole_number(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  command.add_option("--repetitions", run.repetitions, "repetitions of each point (default: the sweep's)")
      ->transform(whole_number(1, 10'000));
  command.add_option("--set", run.set, "set an option of every point: key=value; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--vary", run.vary, "run each of these values of an option: key=value,value; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--timeout", options->texts.timeout, "time limit of one point")->default_str("120s");
  command.add_option("--jobs", run.jobs, "points to run at a time, on sim: and null; 0: one per CPU")
      ->default_str("1")
      ->transform(whole_number(0, 4096));
  command.add_option("--retries", run.retries, "further attempts at a point that failed")
      ->default_str("0")
      ->transform(whole_number(0, 100));
  command.add_flag("--fail_fast", run.fail_fast, "stop at the first failed point");
  add_cluster_options(command, run, options->texts);
  return [options] {
    read_texts(options->texts, options->run);
    return run_sweep(options->run, program_folder(), stdout);
  };
}

}  // namespace verbscope
