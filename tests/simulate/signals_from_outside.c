// Reads a pipe that a child fills, while real timers of the operating system send signals at any moment.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 2000 };

static volatile sig_atomic_t signals;
static void count(int number) {
  (void)number;
  signals = signals + 1;
}

static int fill(int fd) {
  for (int i = 0; i < kBytes; ++i) {
    const struct timespec span = {0, 10000};
    nanosleep(&span, NULL);
    if (write(fd, "x", 1) != 1) return 1;
  }
  return 0;
}

int main(void) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) return fill(ends[1]);
  close(ends[1]);
  const struct sigaction action = {.sa_handler = &count, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  // Not by setitimer(), whose timer is simulated.
  const struct itimerval interval = {{0, 20}, {0, 20}};
  syscall(SYS_setitimer, ITIMER_REAL, &interval, NULL);
  int bytes = 0;
  for (char byte; bytes < kBytes; ++bytes) {
    if (read(ends[0], &byte, 1) != 1) break;
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  syscall(SYS_setitimer, ITIMER_REAL, &never, NULL);
  printf("%d bytes, %s\n", bytes, signals > 0 ? "signals" : "no signal");
  return waitpid(child, NULL, 0) != child;
}
