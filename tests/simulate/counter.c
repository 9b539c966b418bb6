// Reads of the time stamp counter wherever they can be, and bytes that look like one. Argument: counter_library.so.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static void sleep_ms(long ms) {
  const struct timespec span = {0, ms * 1000000};
  nanosleep(&span, NULL);
}

// rdtsc and rdtscp are in these instructions as a constant and a displacement.
static uint32_t constant(void) {
  uint32_t value;
  __asm__("movl $0x310f310f, %0" : "=r"(value));
  return value;
}
static uint64_t displacement(void) {
  uint64_t address = 0;
  __asm__("lea 0x00f9010f(%0), %0" : "+r"(address));
  return address;
}

static sigjmp_buf back;
static void on_fault(int number) {
  siglongjmp(back, number);
}

int main(int count, char** arguments) {
  if (count < 2) return 1;
  const uint64_t begin = __rdtsc();
  sleep_ms(100);
  unsigned processor = 1;
  printf("program %lu\n", (unsigned long)(__rdtscp(&processor) - begin));
  printf("processor %u\n", processor);
  printf("bytes %x %lx\n", constant(), (unsigned long)displacement());
  for (int i = 0; i < 2; ++i) {
    void* const library = dlopen(arguments[1], RTLD_NOW);
    if (library == NULL) return 1;
    sleep_ms(100);
    const uint64_t* const loaded = dlsym(library, "loaded");
    uint64_t (*const now)(void) = (uint64_t(*)(void))dlsym(library, "now");
    printf("library %lu\n", (unsigned long)(now() - *loaded));
    dlclose(library);
  }
  signal(SIGSEGV, &on_fault);
  if (sigsetjmp(back, 1) == 0) __asm__ volatile("hlt");
  printf("own hlt\n");
  return 0;
}
