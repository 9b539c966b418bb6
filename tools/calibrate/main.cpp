// Fits a cluster profile to published and measured rows, and tests the fit on rows left out.
#include <CLI/CLI.hpp>

#include "common/cli.hpp"
#include "common/option_values.hpp"
#include "common/paths.hpp"
#include "tools/calibrate/calibrate.hpp"

namespace verbscope {
namespace {

int body(int argc, char** argv) {
  CLI::App app{"calibrate: fit the calibrated parameters of a cluster profile to published and measured figures"};
  app.footer("Example:\n  calibrate cib --rows 20");
  CalibrateOptions options;
  app.add_option("cluster", options.cluster, "a name in configs/clusters, or a profile's path")->required();
  app.add_option("--rows", options.rows, "fit to at most this many rows")
      ->default_str("60")
      ->transform(whole_number(2, 60));
  app.add_option("--seed", options.seed, "seed for drawing the rows and the folds of the cross-validation")
      ->default_str("1");
  app.add_option("--known_within", options.known_within,
                 "expected error of the profile's values, in percent: penalise moves from them; 0: no penalty")
      ->default_str("5")
      ->transform(number_between(0, 1000));
  app.add_option("--hours", options.hours, "time limit, in hours")
      ->default_str("2")
      ->transform(number_between(0.001, 1000));
  app.add_option("--jobs", options.jobs, "simulations to run at a time")
      ->default_str("one per CPU")
      ->transform(whole_number(1, 1024));
  app.add_flag("--write", options.write, "store the fitted values in the profile");
  parse_args(app, argc, argv);
  return calibrate(options, program_folder(), stdout);
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::run_main("calibrate", argc, argv, verbscope::body);
}
