// Gives programs that open libibverbs by dlopen() and dlsym() the functions of the preloaded library.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "drivers_patch/preload/provider_calls.hpp"

namespace verbscope::driver {
namespace {

using Dlsym = void* (*)(void* handle, const char* name);

// The C library's dlsym. Release 2.34 moved it from libdl and gave it a new version. Any thread may look it up: if
// others waited for the first one, a child forked at that time would wait forever.
Dlsym next_dlsym() {
  static std::atomic<void*> known{nullptr};
  void* found = known.load();
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  known = found;
  return reinterpret_cast<Dlsym>(found);
}

void* ours_for(const char* name, const void* provider) {
#define VERBSCOPE_COMPARE(function, version)                                                   \
  if (std::strcmp(name, #function) == 0 && provider == find_in_libibverbs(#function, version)) \
  return reinterpret_cast<void*>(&::function)
  VERBSCOPE_INTERPOSED(VERBSCOPE_COMPARE);
#undef VERBSCOPE_COMPARE
  return nullptr;
}

}  // namespace

// Finds libibverbs where the program has loaded it, in global symbols or by dlopen(), because the preloaded library
// does not depend on it.
void* find_in_libibverbs(const char* name, const char* version) {
  if (void* const found = dlvsym(RTLD_NEXT, name, version)) return found;
  void* const library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : dlvsym(library, name, version);
}

}  // namespace verbscope::driver

extern "C" {

// The C library's dlsym, which gets all calls that are not handled here.
[[gnu::visibility("hidden"), gnu::used]] void* verbscope_next_dlsym = nullptr;

// The result of dlsym(), or null to jump to the C library's. RTLD_NEXT and RTLD_DEFAULT find the preloaded library
// without help.
[[gnu::visibility("hidden"), gnu::used]] void* verbscope_answer_dlsym(void* handle, const char* name) {
  using namespace verbscope::driver;
  verbscope_next_dlsym = reinterpret_cast<void*>(next_dlsym());
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || std::strncmp(name, "ibv_", 4) != 0) return nullptr;
  return ours_for(name, next_dlsym()(handle, name));
}
}

// For RTLD_NEXT the C library identifies the caller by its return address, so its dlsym is jumped to, not called.
asm(R"(
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call verbscope_answer_dlsym
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    jne 1f
    jmp *verbscope_next_dlsym(%rip)
1:  ret
    .cfi_endproc
    .size dlsym, .-dlsym
)");
