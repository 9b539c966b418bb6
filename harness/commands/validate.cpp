// `verbscope validate`: compares published and measured figures with those of the simulated clusters.
#include "harness/evidence/validate.hpp"

#include <memory>

#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {

Action add_validate(CLI::App& command) {
  command.description("print how far simulated figures are from published and measured ones");
  command.footer("Example:\n  verbscope validate cib --sample 40");
  auto options = std::make_shared<ValidateOptions>();
  command.add_option("only", options->only, "a set, such as atc16 or rc-swarm, or a cluster")->default_str("all");
  command.add_option(
      "--rows", options->rows,
      "run the rows of this CSV file, in a form of configs/measured/forms.json, instead of the shipped rows");
  command
      .add_option("--sample", options->sample,
                  "run this many rows, drawn from those that count as predictions and can run, without slow ones")
      ->default_str("all rows")
      ->transform(whole_number(1, 1'000'000));
  command.add_option("--seed", options->seed, "seed for drawing the rows")
      ->default_str("1")
      ->transform(whole_number(0, std::int64_t{1} << 53));
  command.add_option("--jobs", options->jobs, "simulations to run at a time")
      ->default_str("one per CPU")
      ->transform(whole_number(1, 1024));
  command.add_option("--out", options->out, "write every row to this file");
  command.add_option("--plots", options->plots, "draw measured and simulated curves in this folder");
  return [options] { return validate(*options, program_folder(), stdout); };
}

}  // namespace verbscope
