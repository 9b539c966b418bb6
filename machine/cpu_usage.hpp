// CPU time used by this process.
#pragma once

namespace verbscope {

struct CpuSeconds {
  double user_s = 0;
  double system_s = 0;
  friend CpuSeconds operator-(CpuSeconds a, CpuSeconds b) { return {a.user_s - b.user_s, a.system_s - b.system_s}; }
};

// The CPU time of all threads of this process since its start (getrusage).
CpuSeconds process_cpu();

}  // namespace verbscope
