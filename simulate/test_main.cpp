#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <new>
#include "common/error.hpp"
#include "nic_sim/profile/profile.hpp"
#include "simulate/server/simulation.hpp"
using namespace verbscope;
using namespace verbscope::simulate;
int main(int argc, char** argv) {
  std::vector<std::vector<char*>> commands(1);
  for (int i = 2; i < argc; ++i) {
    if (std::string(argv[i]) == "::") commands.emplace_back(); else commands.back().push_back(argv[i]);
  }
  const int fd = memfd_create("sim", 0);
  if (ftruncate(fd, sizeof(SharedMemory)) != 0) return 1;
  auto* memory = static_cast<SharedMemory*>(mmap(nullptr, sizeof(SharedMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  memory->version = kVersion;
  memory->nodes = uint32_t(commands.size());
  memory->tsc_mhz = 2000;
  std::vector<pid_t> pids;
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
  const std::string library = std::string(self, std::string_view(self).rfind('/')) + "/libverbscope_simulate.so";
  if (FILE* f = fopen("/proc/cpuinfo", "r")) {
    char line[256];
    while (fgets(line, sizeof line, f) && sscanf(line, "cpu MHz : %lf", &memory->tsc_mhz) != 1) {}
    fclose(f);
  }
  for (std::size_t n = 0; n < commands.size(); ++n) {
    commands[n].push_back(nullptr);
    const pid_t p = fork();
    if (p == 0) {
      setenv(kMemoryVariable, ("/proc/" + std::to_string(getppid()) + "/fd/" + std::to_string(fd)).c_str(), 1);
      setenv(kNodeVariable, std::to_string(n).c_str(), 1);
      setenv("LD_PRELOAD", library.c_str(), 1);
      personality(ADDR_NO_RANDOMIZE);
      execvp(commands[n][0], commands[n].data());
      perror("exec");
      _exit(127);
    }
    pids.push_back(p);
  }
  std::stop_source stop;
  SimulationOptions options;
  options.nodes = int(commands.size());
  Simulation sim(*memory, load_profile(argv[1]), options, stop.get_token(), [] {});
  try { sim.run(pids); } catch (const std::exception& e) { fprintf(stderr, "error: %s\n", e.what()); }
  fprintf(stderr, "virtual %.3f ms, silent %lu blocked %lu events %lu\n", double(sim.cluster().now().count()) / 1e9, sim.silences().silent, sim.silences().blocked, sim.cluster().events_run());
  for (pid_t p : pids) { int st; waitpid(p, &st, 0); if (st) fprintf(stderr, "%d: status %x\n", p, st); }
}
