// `verbscope reproduce`: reproduces the published figures of a paper on the simulated clusters.
#include "harness/paper/reproduce.hpp"

#include <memory>

#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {

Action add_reproduce(CLI::App& command) {
  command.description("run the published figures of a paper on the simulated clusters, and compare");
  command.footer("Example:\n  verbscope reproduce atc16");
  auto options = std::make_shared<ReproduceOptions>();
  command.add_option("paper", options->paper, "a paper in configs/published.json, such as atc16")->required();
  command.add_option("--out", options->out, "append records here")->default_str("results/local/PAPER.jsonl");
  command.add_option("--jobs", options->jobs, "points to run at a time")
      ->default_str("one per CPU")
      ->transform(whole_number(1, 1024));
  command.add_flag("--rows_only", options->rows_only, "run the published figures without the curves");
  return [options] { return reproduce_paper(*options, program_folder(), stdout); };
}

}  // namespace verbscope
