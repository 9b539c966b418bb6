// `verbscope recalibrate`: fits a cluster profile to published and measured rows, and tests the fit on rows left out.
#include "harness/evidence/recalibrate.hpp"

#include <memory>

#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {

Action add_recalibrate(CLI::App& command) {
  command.description("fit a cluster profile to published and measured figures");
  command.footer("Example:\n  verbscope recalibrate cib --rows 20");
  auto options = std::make_shared<RecalibrateOptions>();
  command.add_option("cluster", options->cluster, "a name in configs/clusters, or a profile's path")->required();
  command.add_option("--rows", options->rows, "so many rows at most")
      ->default_str("60")
      ->transform(whole_number(2, 60));
  command.add_option("--seed", options->seed, "of the rows and the folds")->default_str("1");
  command
      .add_option("--known_within", options->known_within,
                  "how far off the profile's values may be, in percent of them; 0: nothing is known of them")
      ->default_str("5")
      ->transform(number_between(0, 1000));
  command.add_option("--hours", options->hours, "the longest time")
      ->default_str("2")
      ->transform(number_between(0.001, 1000));
  command.add_option("--jobs", options->jobs, "runs at a time")
      ->default_str("one for each CPU")
      ->transform(whole_number(1, 1024));
  command.add_flag("--write", options->write, "put the new values into the profile");
  return [options] { return recalibrate(*options, program_folder(), stdout); };
}

}  // namespace verbscope
