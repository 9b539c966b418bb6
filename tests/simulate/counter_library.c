// A library that reads the time stamp counter while it is loaded, and later.
#include <stdint.h>
#include <x86intrin.h>

uint64_t loaded;
__attribute__((constructor)) static void load(void) {
  loaded = __rdtsc();
}
uint64_t now(void) {
  return __rdtsc();
}
