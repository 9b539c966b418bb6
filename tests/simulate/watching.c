// Threads and signals around loops on memory: each line tells what a thread saw, and when.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile int turn, rung, trapped, counted;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)(time.tv_sec % 1000) * 1e6 + (double)time.tv_nsec / 1e3;
}

// Two threads that pass a turn to each other by memory alone, after the first has slept.
static void* answer(void* unused) {
  (void)unused;
  for (int round = 0; round < 20; ++round) {
    while (turn != 2 * round + 1) {
    }
    turn = 2 * round + 2;
  }
  printf("%.3f answered 0\n", now());
  return NULL;
}

// A loop that changes a register each time round cannot be told from work: it is known by its CPU time.
static void* count(void* unused) {
  (void)unused;
  uint64_t rounds = 0;
  while (counted == 0) ++rounds;
  printf("%.3f counted %d\n", now(), rounds > 0);
  return NULL;
}

static void ring(int signal) {
  (void)signal;
  rung = 1;
}
static void trap(int signal) {
  (void)signal;
  ++trapped;
}

int main(int arguments, char** argument) {
  (void)argument;
  setvbuf(stdout, NULL, _IOLBF, 0);
  pthread_t other;
  if (arguments > 1) {
    pthread_create(&other, NULL, count, NULL);
    usleep(2000);
    counted = 1;
    pthread_join(other, NULL);
    return 0;
  }
  pthread_create(&other, NULL, answer, NULL);
  usleep(1000);
  printf("%.3f begin 0\n", now());
  for (int round = 0; round < 20; ++round) {
    turn = 2 * round + 1;
    while (turn != 2 * round + 2) {
    }
  }
  printf("%.3f passed 0\n", now());
  pthread_join(other, NULL);

  // A timer's signal ends a loop, also with all signals that can be blocked blocked before.
  sigset_t all, seen;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  sigprocmask(SIG_SETMASK, &all, NULL);
  sigprocmask(SIG_SETMASK, NULL, &seen);
  signal(SIGALRM, ring);
  const struct itimerspec soon = {.it_value = {.tv_nsec = 700000}};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, NULL, &timer);
  const double armed = now();
  timer_settime(timer, 0, &soon, NULL);
  while (rung == 0) {
  }
  printf("%.3f rung 0\n", now() - armed);
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);

  // SIGTRAP is the program's own too.
  signal(SIGTRAP, trap);
  __asm__ volatile("int3");
  raise(SIGTRAP);
  printf("%.3f trapped %d blocked %d\n", now(), trapped, sigismember(&seen, SIGTRAP));

  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  printf("%.3f cores %d\n", now(), CPU_COUNT(&cores) == (int)sysconf(_SC_NPROCESSORS_ONLN));
  return 0;
}
