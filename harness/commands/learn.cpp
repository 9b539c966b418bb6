// `verbscope learn`: learns the profile of a cluster.
#include "harness/learn/learn.hpp"

#include <fmt/ranges.h>

#include <limits>
#include <memory>

#include "analysis/results_files.hpp"
#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/text.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"
#include "harness/import/import_files.hpp"

namespace verbscope {
namespace {

struct LearnTexts {
  std::vector<std::string> records, imports;
  std::string budget = "15min";
};

double seconds_of(const std::string& text) {
  constexpr double kMinute = 60;
  if (text.ends_with("min")) {
    const auto minutes = number_from<double>(text.substr(0, text.size() - 3));
    if (minutes && *minutes > 0) return *minutes * kMinute;
  }
  const double seconds = to_seconds(parse_duration(text, "--budget"));
  if (!(seconds > 0)) fail_usage("--budget {}: expected a time above 0, such as 15min", text);
  return seconds;
}

void read_given(const LearnTexts& texts, LearnOptions& options) {
  options.budget_seconds = seconds_of(texts.budget);
  if (!options.report.empty()) check_output("--report", options.report, FileKind::report_page);
  if (!texts.records.empty()) options.records = load_results(texts.records, true);
  if (!texts.imports.empty()) {
    const ImportRequest request{.files = paths_of(texts.imports), .command_line = {"verbscope", "learn", "--import"}};
    for (Record& record : import_files(request)) options.records.push_back(std::move(record));
  }
  std::vector<std::string> files = texts.records;
  files.insert(files.end(), texts.imports.begin(), texts.imports.end());
  if (!options.rows.empty()) {
    if (options.cluster.empty()) fail_usage("--rows {}: give the cluster of the rows with --cluster", options.rows);
    if (!options.hosts.empty()) fail_usage("--rows: not with --hosts");
    check_cluster(options.cluster);
    files.push_back(options.rows);
  }
  if (options.hosts.empty() && files.empty()) fail_usage("give --hosts to measure, or --records or --import");
  options.given = fmt::format("{}", fmt::join(files, ", "));
}

}  // namespace

Action add_learn(CLI::App& command) {
  command.description("learn the profile of a cluster from measurements");
  command.footer(
      "Examples:\n  verbscope learn --hosts hosts.txt --out my-cx7.json\n  verbscope learn --fabric sim:cib --like cx6 "
      "--out learned.json\n  verbscope learn --records results/local/mine.jsonl --out mine.json");
  struct Options {
    LearnOptions learn;
    LearnTexts texts;
  };
  auto options = std::make_shared<Options>();
  LearnOptions& learn_options = options->learn;
  LearnTexts& texts = options->texts;
  command.add_option("--hosts,--fabric", learn_options.hosts,
                     "measure here: a hosts file, host names (node1,node2), slurm, or sim:NAME");
  command.add_option("--records", texts.records,
                     "begin with the records of these results files; without --hosts, use only them");
  command.add_option("--import", texts.imports, "likewise with output of perftest or ucx_perftest");
  command.add_option("--rows", learn_options.rows,
                     "learn from the rows of this CSV file, in a form of configs/measured/forms.json");
  command.add_option("--cluster", learn_options.cluster,
                     "with --rows: use the rows of this cluster, and the facts that its profile documents");
  command
      .add_option("--out", learn_options.out,
                  "write the profile to this file; records go beside it, with the extension .jsonl")
      ->required();
  command.add_option("--report", learn_options.report, "write a page with measured and simulated points to this file");
  command.add_option("--budget", texts.budget, "stop measuring after this long")->default_str("15min");
  command.add_option("--points", learn_options.points, "measure at most this many points")
      ->default_str("300")
      ->transform(whole_number(20, 10'000));
  command.add_option("--like", learn_options.like, "start from one of these profiles (default: the nearest of all)")
      ->delimiter(',');
  command.add_option("--seed", learn_options.seed, "seed for drawing the points that judge the fit")
      ->default_str("1")
      ->transform(whole_number(0, std::int64_t{1} << 53));
  command.add_option("--jobs", learn_options.jobs, "simulations to run at a time")
      ->default_str("one per CPU")
      ->transform(whole_number(1, 1024));
  command
      .add_option("--disturb", learn_options.disturb,
                  "sim: disturb the figures with this seed as hardware does: noise of 1 %, 2 % outliers, one of four "
                  "hosts with a slow CPU")
      ->transform(whole_number(0, std::int64_t{1} << 53));
  add_launcher(command, learn_options.launcher, kAnyLauncher);
  return [options] {
    read_given(options->texts, options->learn);
    return learn(options->learn, program_folder(), stdout);
  };
}

}  // namespace verbscope
