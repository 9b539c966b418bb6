#include "harness/cluster/slurm_launcher.hpp"

#include <cstdlib>

#include "common/error.hpp"
#include "harness/process/find_program.hpp"

namespace verbscope {

SlurmLauncher::SlurmLauncher() {
  if (std::getenv("SLURM_JOB_ID") == nullptr) {
    fail(
        "--launcher slurm: this is no Slurm allocation; use salloc, sbatch, or --array to submit the sweep as a job "
        "array");
  }
  srun_ = find_program("srun");
}

// Steps overlap, because a server and its client may share a node, and points may run at the same time.
std::vector<std::string> SlurmLauncher::command(const Host& host, const std::vector<std::string>& words) {
  std::vector<std::string> out{srun_,       "--quiet", "--nodes=1",       "--ntasks=1",
                               "--overlap", "--mem=0", "--cpu-bind=none", "--unbuffered"};
  if (!host.name.empty()) out.push_back("--nodelist=" + host.name);
  out.push_back("--");
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

}  // namespace verbscope
