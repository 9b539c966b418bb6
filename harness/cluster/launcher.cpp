#include "harness/cluster/launcher.hpp"

#include "common/error.hpp"
#include "harness/cluster/slurm_launcher.hpp"
#include "harness/cluster/ssh_launcher.hpp"

namespace verbscope {

std::unique_ptr<Launcher> make_launcher(const LauncherOptions& options, StopSource* stop) {
  if (options.name == "local") return nullptr;
  if (options.name == "ssh") return std::make_unique<SshLauncher>(options, stop);
  if (options.name == "slurm") return std::make_unique<SlurmLauncher>();
  fail_usage("--launcher: expected local, ssh or slurm, got \"{}\"", options.name);
}

}  // namespace verbscope
