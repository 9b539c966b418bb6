#include "simulate/preload/tsc.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <utility>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/taken_signals.hpp"

namespace verbscope::simulate {
namespace {

constexpr std::int64_t kReadTscPs = 8'000;  // 20 to 25 cycles (Agner Fog, instruction tables)

bool traps = false;   // true once the process has joined a simulation
bool probes = false;  // the processor is asked whether it raises SIGSEGV

void allow(bool allowed) {
  syscall(SYS_prctl, PR_SET_TSC, allowed ? PR_TSC_ENABLE : PR_TSC_SIGSEGV, 0, 0, 0);
}

// The counter in virtual time.
std::uint64_t virtual_counter() {
  const auto picos = static_cast<long double>(kUpSeconds * kPicosPerSecond + now_ps(kReadTscPs));
  return static_cast<std::uint64_t>(picos * static_cast<long double>(tsc_mhz()) / kPicosPerMicro);
}

std::uint64_t real_counter() {
  const TscAllowed allowed;
  return __builtin_ia32_rdtsc();
}

// The C library itself reads clocks through the kernel's code in the process, without calls that this library could
// stand before: of the real time, from the real counter.
bool in_kernel_page(std::uint64_t address) {
  static const std::uint64_t begin = getauxval(AT_SYSINFO_EHDR);
  if (begin == 0 || address < begin) return false;
  const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(begin);
  const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(begin + header.e_phoff);
  std::uint64_t bytes = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD) bytes = segments[i].p_vaddr + segments[i].p_memsz;
  }
  return address < begin + bytes;
}

// True if the fault was an instruction that reads the counter, which is carried out.
bool read_counter(siginfo_t& info, ucontext_t& context) {
  if (info.si_code != SI_KERNEL) return false;
  greg_t* const registers = context.uc_mcontext.gregs;
  const auto at = static_cast<std::uint64_t>(registers[REG_RIP]);
  const auto* const code = reinterpret_cast<const std::uint8_t*>(at);
  const bool rdtsc = code[0] == 0x0f && code[1] == 0x31;
  const bool rdtscp = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
  if (!rdtsc && !rdtscp) return false;
  const bool real = std::exchange(probes, false) || in_kernel_page(at) || !simulated();
  const std::uint64_t counter = real ? real_counter() : virtual_counter();
  registers[REG_RAX] = static_cast<std::uint32_t>(counter);
  registers[REG_RDX] = static_cast<greg_t>(counter >> 32);
  if (rdtscp) registers[REG_RCX] = 0;  // processor 0 of NUMA node 0
  registers[REG_RIP] += rdtsc ? 2 : 3;
  return true;
}

}  // namespace

bool trap_time_stamp_counter() {
  take_signal(SIGSEGV, &read_counter);
  traps = true;
  allow(false);
  probes = true;
  __asm__ volatile("rdtsc" : : : "rax", "rdx", "memory");
  return !std::exchange(probes, false);
}

TscAllowed::TscAllowed() {
  allow(true);
}
TscAllowed::~TscAllowed() {
  if (traps) allow(false);
}

}  // namespace verbscope::simulate
