// Runs programs of the operating system on the nodes of a simulated cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/record.hpp"
#include "common/units.hpp"
#include "harness/process/stop.hpp"
#include "harness/simulate/programs.hpp"

namespace verbscope {

struct SimulateRequest {
  std::string cluster = "cib";
  int nodes = 0;  // 0: as many as the programs need
  std::uint64_t seed = 1;
  std::vector<SimulatedProgram> programs;
  std::vector<std::string> command_line;           // of this program, for the record
  std::optional<std::chrono::milliseconds> limit;  // of real time
  std::chrono::nanoseconds silence{2'000'000};
  Picos start_gap{100'000'000'000};
};

// Receives what happens during a simulation.
class SimulationEvents {
 public:
  enum class Stream { out, error };

  virtual ~SimulationEvents() = default;
  // SimulateRequest::programs[program] printed this.
  virtual void printed(std::size_t program, Stream stream, std::string_view chunk) = 0;
  // Called several times a second, with the time that has passed.
  virtual void progressed(double /*real_s*/, double /*simulated_s*/) {}
};

// Runs the programs until all have ended, one has failed, or `stop` fires. Returns the record of the run, whose status
// is failed if a program failed; its result then has the last output of that program, output_tail. Throws Error and
// UsageError.
Record run_programs(const SimulateRequest& request, SimulationEvents& events, StopSource& stop);

}  // namespace verbscope
