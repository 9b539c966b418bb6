// Steps of the Slurm allocation that this process runs in: one srun a program.
#pragma once

#include "harness/cluster/launcher.hpp"

namespace verbscope {

class SlurmLauncher : public Launcher {
 public:
  // Throws when this is no allocation (SLURM_JOB_ID is not set) or there is no srun.
  SlurmLauncher();
  const char* name() const override { return "slurm"; }
  std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) override;
  void lost(const Host&) override {}

 private:
  std::string srun_;
};

}  // namespace verbscope
