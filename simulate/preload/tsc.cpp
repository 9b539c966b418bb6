#include "simulate/preload/tsc.hpp"

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <vector>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/counter_reads.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/taken_signals.hpp"

extern const char __ehdr_start __attribute__((visibility("hidden")));  // the first byte of this library

namespace verbscope::simulate {
namespace {

constexpr std::int64_t kReadTscPs = 8'000;  // 20 to 25 cycles (Agner Fog, instruction tables)
constexpr std::uint8_t kHlt = 0xf4;

// The instructions that were replaced, by the load address of their object. A new map takes the place of the old one,
// which is not freed: the handler of another thread may still read it.
using Replaced = std::map<std::uint64_t, std::vector<FoundRead>>;
const Replaced kNone;
constinit std::atomic<const Replaced*> replaced = &kNone;
constinit std::uint64_t list_changed = 0;  // address of the loader's function that tells of a change

// The counter in virtual time.
std::uint64_t virtual_counter() {
  const auto picos = static_cast<long double>(kUpSeconds * kPicosPerSecond + now_ps(kReadTscPs));
  return static_cast<std::uint64_t>(picos * static_cast<long double>(tsc_mhz()) / kPicosPerMicro);
}

void put_hlt(std::uint64_t address) {
  auto* const code = reinterpret_cast<std::uint8_t*>(address);
  if (*code == kHlt) return;
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
  if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    refuse("the kernel does not let the reads of the time stamp counter be replaced (mprotect)");
  *code = kHlt;
  mprotect(page, page_bytes, PROT_READ | PROT_EXEC);
}

// The kernel's code in the process is how the C library reads clocks: of the real time. This library's own reads are
// real too. The loader reads the counter for statistics about itself only.
bool is_real_time(const dl_phdr_info& object) {
  return object.dlpi_addr == getauxval(AT_SYSINFO_EHDR) || object.dlpi_addr == getauxval(AT_BASE) ||
         object.dlpi_addr == reinterpret_cast<std::uint64_t>(&__ehdr_start);
}

// In objects that were not there before; forgets those that are no longer there.
void replace_new_reads() {
  auto& objects = *new Replaced;
  const auto look_at = [](dl_phdr_info* object, std::size_t, void* to) {
    auto& reads = (*static_cast<Replaced*>(to))[object->dlpi_addr];
    const auto before = replaced.load()->find(object->dlpi_addr);
    if (before != replaced.load()->end()) {
      reads = before->second;
    } else if (!is_real_time(*object)) {
      reads = find_counter_reads(*object);
    }
    return 0;
  };
  dl_iterate_phdr(look_at, &objects);
  replaced = &objects;  // before the processor meets the first hlt
  for (const auto& [address, reads] : objects) {
    for (const auto& read : reads) put_hlt(read.address);
  }
}

// The loader calls a function at each change of its list of objects, for debuggers (link.h). After dlopen(3) that is
// before the constructors of the new objects run. Here stands hlt in place of its code, and this does its work.
void do_nothing() {}
void follow_list_of_objects() {
  list_changed = _r_debug.r_brk;
  put_hlt(list_changed);
}

// Null: nothing was replaced there.
const FoundRead* replaced_at(std::uint64_t address) {
  const Replaced& objects = *replaced.load();
  const auto after = objects.upper_bound(address);
  if (after == objects.begin()) return nullptr;
  const auto& reads = std::prev(after)->second;
  const auto read = std::ranges::find(reads, address, &FoundRead::address);
  return read == reads.end() ? nullptr : &*read;
}

// True if the fault was one of this library's hlt: the instruction there is carried out.
bool on_fault(siginfo_t& info, ucontext_t& context) {
  if (info.si_code != SI_KERNEL) return false;
  greg_t* const registers = context.uc_mcontext.gregs;
  const auto at = static_cast<std::uint64_t>(registers[REG_RIP]);
  if (at == list_changed) {
    const Deliverable faults(SIGSEGV);  // the C library may read the counter
    if (_r_debug.r_state == r_debug::RT_CONSISTENT) replace_new_reads();
    registers[REG_RIP] = reinterpret_cast<greg_t>(&do_nothing);
    return true;
  }
  const FoundRead* const read = replaced_at(at);
  if (read == nullptr) return false;
  const std::uint64_t counter = simulated() ? virtual_counter() : __builtin_ia32_rdtsc();
  registers[REG_RAX] = static_cast<std::uint32_t>(counter);
  registers[REG_RDX] = static_cast<greg_t>(counter >> 32);
  if (read->read == CounterRead::rdtscp) registers[REG_RCX] = 0;  // processor 0 of NUMA node 0
  registers[REG_RIP] += bytes_of(read->read);
  return true;
}

}  // namespace

void replace_counter_reads() {
  take_signal(SIGSEGV, &on_fault);
  replace_new_reads();
  follow_list_of_objects();
}

}  // namespace verbscope::simulate
