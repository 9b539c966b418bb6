#include "machine/cpu_usage.hpp"

#include <sys/resource.h>

#include "common/error.hpp"

namespace verbscope {

namespace {
double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
}  // namespace

CpuSeconds process_cpu() {
  rusage usage{};
  check("read the CPU usage of this process", getrusage(RUSAGE_SELF, &usage));
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

}  // namespace verbscope
