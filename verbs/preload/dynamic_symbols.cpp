#include "verbs/preload/dynamic_symbols.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

namespace verbscope::preload {
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

// The replacement by the next preloaded library; null if it has none, or there is no other.
void* next_replacement(void* handle, const char* name) {
  static std::atomic<void*> known{nullptr};
  static std::atomic<bool> searched{false};
  if (!searched) {
    known = dlvsym(RTLD_NEXT, "verbscope_find_replacement", "VERBSCOPE_PRELOAD");
    searched = true;
  }
  return known == nullptr ? nullptr : reinterpret_cast<Dlsym>(known.load())(handle, name);
}

void* loaded_library(const char* name) {
  return name == nullptr ? nullptr : dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

const char* file_of(const void* place) {
  Dl_info info{};
  return place != nullptr && dladdr(place, &info) != 0 ? info.dli_fname : nullptr;
}

// This library's function of the name.
void* own_function(const char* name) {
  static std::atomic<void*> own{nullptr};
  if (own == nullptr) own = loaded_library(file_of(&own));
  return own == nullptr ? nullptr : next_dlsym()(own, name);
}

bool is_of_libibverbs(const void* function) {
  void* const library = loaded_library("libibverbs.so.1");
  void* const known = library == nullptr ? nullptr : next_dlsym()(library, "ibv_get_device_list");
  const char* const file = file_of(function);
  const char* const wanted = file_of(known);
  return file != nullptr && wanted != nullptr && std::strcmp(file, wanted) == 0;
}

void* replacement(void* handle, const char* name) {
  if (std::strncmp(name, "ibv_", 4) != 0 && std::strncmp(name, "_ibv_", 5) != 0) return nullptr;
  void* const next = next_replacement(handle, name);
  if (next == nullptr && !is_of_libibverbs(next_dlsym()(handle, name))) return nullptr;
  void* const own = own_function(name);
  return own != nullptr ? own : next;
}

}  // namespace

void* find_in_libibverbs(const char* name, const char* version) {
  if (void* const found = dlvsym(RTLD_NEXT, name, version)) return found;
  void* const library = loaded_library("libibverbs.so.1");
  return library == nullptr ? nullptr : dlvsym(library, name, version);
}

}  // namespace verbscope::preload

extern "C" {

// The C library's dlsym, which gets all calls that are not handled here.
[[gnu::visibility("hidden"), gnu::used]] void* verbscope_next_dlsym = nullptr;

// What this library, or one that is preloaded after it, has in place of libibverbs' function of the name, which dlsym()
// would find with the handle. Null: nothing.
[[gnu::visibility("default")]] void* verbscope_find_replacement(void* handle, const char* name) {
  return verbscope::preload::replacement(handle, name);
}

// The result of dlsym(), or null to jump to the C library's. RTLD_NEXT and RTLD_DEFAULT find the preloaded libraries
// without help.
[[gnu::visibility("hidden"), gnu::used]] void* verbscope_answer_dlsym(void* handle, const char* name) {
  verbscope_next_dlsym = reinterpret_cast<void*>(verbscope::preload::next_dlsym());
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return nullptr;
  return verbscope::preload::replacement(handle, name);
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
