// `verbscope recalibrate`: fits a cluster profile to its published rows and shows the residuals.
#include <memory>

#include "common/paths.hpp"
#include "harness/commands/command.hpp"
#include "harness/paper/recalibrate_cluster.hpp"

namespace verbscope {

Action add_recalibrate(CLI::App& command) {
  command.description("fit a cluster profile to its published figures");
  struct Options {
    std::string cluster;
    bool write = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("cluster", options->cluster, "a name in configs/clusters, or a profile's path")->required();
  command.add_flag("--write", options->write, "put the new values into the profile");
  return [options] { return recalibrate_cluster(options->cluster, options->write, program_folder(), stdout); };
}

}  // namespace verbscope
