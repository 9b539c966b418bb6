// Runs programs as steps of the current Slurm allocation: one srun per program.
#pragma once

#include "harness/cluster/launcher.hpp"

namespace verbscope {

class SlurmLauncher : public Launcher {
 public:
  // Throws outside an allocation (SLURM_JOB_ID is not set) or without srun.
  SlurmLauncher();
  const char* name() const override { return "slurm"; }
  std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) override;
  void lost(const Host&) override {}

 private:
  std::string srun_;
};

}  // namespace verbscope
