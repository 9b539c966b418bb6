// Timers, signals and the time stamp counter, with the virtual times at which they act.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)(t.tv_sec - 1000) * 1e6 + (double)t.tv_nsec / 1e3;
}
static void say(const char* what, long value) { printf("%14.3f %s %ld\n", now(), what, value); }

static volatile sig_atomic_t alarms;
static double alarm_time;
static void on_alarm(int number) {
  (void)number;
  ++alarms;
  alarm_time = now();
}
static volatile sig_atomic_t value_seen, code_seen, overruns;
static void on_timer(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  value_seen = info->si_value.sival_int;
  code_seen = info->si_code;
  overruns = overruns + info->si_overrun;
  ++alarms;
}
static void notified(union sigval value) { say("SIGEV_THREAD", value.sival_int); }

static sigjmp_buf back;
static uint64_t in_handler;
static void* fault_address;
static void on_fault(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  fault_address = info->si_addr;
  const uint64_t begin = __rdtsc();
  in_handler = __rdtsc() - begin;
  siglongjmp(back, 1);
}
static void once(int number) {
  (void)number;
  siglongjmp(back, 2);
}

static void* waits_for_signal(void* set) {
  int number = 0;
  sigwait(set, &number);
  say("sigwait", number);
  return NULL;
}

int main(void) {
  signal(SIGALRM, on_alarm);
  alarm(2);
  unsigned left = sleep(5);
  say("alarm ended sleep, left", left);
  const struct itimerval every = {{0, 100000}, {0, 250000}};
  setitimer(ITIMER_REAL, &every, NULL);
  alarms = 0;
  while (alarms < 3) pause();
  say("setitimer", alarms);
  struct itimerval rest;
  getitimer(ITIMER_REAL, &rest);
  say("rest", rest.it_value.tv_usec);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  struct timespec span = {0, 700}, remaining = {0, 0};
  alarm(1);
  span.tv_sec = 3;
  int failed = nanosleep(&span, &remaining) != 0 && errno == EINTR;
  say(failed ? "interrupted" : "wrong", remaining.tv_sec * 1000000000 + remaining.tv_nsec);

  struct sigaction action = {0};
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, NULL);
  struct sigevent event = {0};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  event.sigev_value.sival_int = 42;
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  const struct itimerspec soon = {{0, 10000000}, {0, 30000000}};
  timer_settime(timer, 0, &soon, NULL);
  alarms = 0;
  while (alarms < 4) pause();
  say("timer", value_seen * 100 + (code_seen == SI_TIMER) * 10 + alarms);
  timer_delete(timer);
  alarms = 0;
  while (alarms < 1) {  // a thread that only reads clocks
    static int set;
    if (!set) set = 1, ualarm(700, 0), signal(SIGALRM, on_alarm);
    now();
  }
  say("busy", (long)alarm_time % 1000);

  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = notified;
  timer_create(CLOCK_REALTIME, &event, &timer);
  timer_settime(timer, 0, &soon, NULL);
  usleep(55000);
  timer_delete(timer);
  usleep(55000);

  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  timerfd_settime(fd, 0, &soon, NULL);
  uint64_t count = 0;
  while (read(fd, &count, sizeof count) != sizeof count) usleep(1000);
  say("timerfd", (long)count);
  usleep(25000);
  failed = read(fd, &count, sizeof count) != sizeof count;
  say(failed ? "wrong" : "timerfd again", (long)count);
  timerfd_settime(fd, 0, &(struct itimerspec){{0, 0}, {0, 0}}, NULL);
  usleep(25000);
  say(read(fd, &count, sizeof count) < 0 && errno == EAGAIN ? "disarmed" : "wrong", 0);

  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  sigaddset(&set, SIGSEGV);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  uint64_t begin = __rdtsc();
  say("blocked SIGSEGV", (long)(__rdtsc() - begin));
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  say("mask has it", sigismember(&before, SIGSEGV));
  pthread_t thread;
  pthread_create(&thread, NULL, waits_for_signal, &set);
  alarm(1);
  pthread_join(thread, NULL);
  const struct timespec wait = {0, 5000000};
  say(sigtimedwait(&set, NULL, &wait) < 0 && errno == EAGAIN ? "no signal" : "wrong", 0);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);

  action.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &action, NULL);
  struct sigaction old;
  sigaction(SIGSEGV, NULL, &old);
  say(old.sa_sigaction == on_fault ? "action is kept" : "wrong", 0);
  char* const page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 2; ++i) {
    if (sigsetjmp(back, 1) == 0) page[7] = 1;
    say(fault_address == page + 7 ? "fault" : "wrong", (long)in_handler);
  }
  action.sa_handler = once;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGSEGV, &action, NULL);
  if (sigsetjmp(back, 1) == 0) page[7] = 1;
  sigaction(SIGSEGV, NULL, &old);
  say(old.sa_handler == SIG_DFL ? "once" : "wrong", 0);
  begin = __rdtsc();
  span = (struct timespec){0, 1000000};
  nanosleep(&span, NULL);
  unsigned processor = 1;
  say("rdtscp per us", (long)((__rdtscp(&processor) - begin) / 1000));
  say("work in us", clock() < 1000000 ? 0 : clock());
  fflush(stdout);
  page[7] = 1;  // ends the program
  return 0;
}
