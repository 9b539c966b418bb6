// `verbscope validate`: compares published and measured figures with those of the simulated clusters.
#include "harness/evidence/validate.hpp"

#include <memory>

#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {

Action add_validate(CLI::App& command) {
  command.description("how far simulated figures are from published and measured ones");
  command.footer("Example:\n  verbscope validate cib --sample 40");
  auto options = std::make_shared<ValidateOptions>();
  command.add_option("only", options->only, "a set, as atc16 or rc-swarm, or a cluster")->default_str("all");
  command.add_option("--rows", options->rows, "a CSV file of a measured form, instead of the rows that ship");
  command
      .add_option("--sample", options->sample,
                  "draw this many of the rows that run and count and that no parameter was fitted to")
      ->default_str("all rows")
      ->transform(whole_number(1, 1'000'000));
  command.add_option("--seed", options->seed, "of the draw")
      ->default_str("1")
      ->transform(whole_number(0, std::int64_t{1} << 53));
  command.add_option("--jobs", options->jobs, "runs at a time")
      ->default_str("one for each CPU")
      ->transform(whole_number(1, 1024));
  command.add_option("--out", options->out, "write every row to this file");
  command.add_option("--plots", options->plots, "draw measured curves and ours in this folder");
  return [options] { return validate(*options, program_folder(), stdout); };
}

}  // namespace verbscope
