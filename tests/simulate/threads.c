// Threads that wait for each other in every way, and print the virtual times at which they go on.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spinlock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static mtx_t c11_mutex;
static cnd_t c11_condition;
static int turn, ready, c11_ready;
static atomic_int flag;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)(t.tv_sec - 1000) * 1e6 + (double)t.tv_nsec / 1e3;
}
static void say(const char* what, long who) { printf("%12.3f %s %ld\n", now(), what, who); }
static void pause_for(long us) {
  const struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}
static struct timespec in_us(clockid_t clock, long us) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += us * 1000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}
static void first(void) {
  say("once", 0);
  pause_for(50);
}
static void cleaned(void* who) { say("cancelled", (long)who); }

static void* worker(void* number) {
  const long me = (long)number;
  pause_for(100 * (me + 1));
  pthread_once(&once, first);
  say("after once", me);
  pthread_mutex_lock(&mutex);
  say("has the mutex", me);
  pause_for(30);
  while (turn != me) pthread_cond_wait(&condition, &mutex);
  ++turn;
  pthread_cond_broadcast(&condition);
  pthread_mutex_unlock(&mutex);
  say("had its turn", me);
  const int last = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
  say(last ? "last at the barrier" : "behind the barrier", me);
  if (me % 2 == 0) {
    pthread_rwlock_rdlock(&lock);
    say("reads", me);
    pause_for(20);
    pthread_rwlock_unlock(&lock);
  } else {
    pthread_rwlock_wrlock(&lock);
    say("writes", me);
    pause_for(20);
    pthread_rwlock_unlock(&lock);
  }
  pthread_spin_lock(&spinlock);
  pause_for(5);
  pthread_spin_unlock(&spinlock);
  say("spun", me);
  while (sem_wait(&semaphore) != 0) {
  }
  say("has the semaphore", me);
  mtx_lock(&c11_mutex);
  while (!c11_ready) cnd_wait(&c11_condition, &c11_mutex);
  mtx_unlock(&c11_mutex);
  say("C11", me);
  while (!atomic_load(&flag)) sched_yield();
  say("saw the flag", me);
  if (me == 1) pthread_exit((void*)77L);
  return (void*)(me * 10);
}

static void unlock(void* unused) {
  (void)unused;
  pthread_mutex_unlock(&mutex);
}

static void* waits_for_ever(void* number) {
  pthread_cleanup_push(cleaned, number);
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, NULL);
  while (!ready) pthread_cond_wait(&condition, &mutex);
  pthread_cleanup_pop(1);
  pthread_cleanup_pop(0);
  return NULL;
}

int main(void) {
  enum { kThreads = 4 };
  pthread_t threads[kThreads], endless, sleeper;
  pthread_barrier_init(&barrier, NULL, kThreads);
  pthread_spin_init(&spinlock, 0);
  sem_init(&semaphore, 0, 0);
  mtx_init(&c11_mutex, mtx_plain);
  cnd_init(&c11_condition);
  for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, worker, (void*)i);
  say("created", kThreads);
  struct timespec t = in_us(CLOCK_REALTIME, 500);
  pthread_mutex_lock(&mutex);
  while (pthread_cond_timedwait(&condition, &mutex, &t) != ETIMEDOUT) {
  }
  pthread_mutex_unlock(&mutex);
  say("timed out", 0);
  t = in_us(CLOCK_REALTIME, 300);
  say(sem_timedwait(&semaphore, &t) != 0 && errno == ETIMEDOUT ? "no semaphore" : "wrong", 0);
  for (int i = 0; i < kThreads; ++i) {
    pause_for(10);
    sem_post(&semaphore);
  }
  pause_for(100);
  mtx_lock(&c11_mutex);
  c11_ready = 1;
  cnd_broadcast(&c11_condition);
  mtx_unlock(&c11_mutex);
  pause_for(100);
  say(pthread_tryjoin_np(threads[0], NULL) == EBUSY ? "it still runs" : "wrong", 0);
  t = in_us(CLOCK_REALTIME, 40);
  say(pthread_timedjoin_np(threads[0], NULL, &t) == ETIMEDOUT ? "and then" : "wrong", 0);
  atomic_store(&flag, 1);
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    say("joined", (long)result);
  }
  pthread_create(&endless, NULL, waits_for_ever, (void*)5L);
  pthread_create(&sleeper, NULL, (void* (*)(void*))(void (*)(void))sleep, (void*)100L);
  pause_for(1000);
  pthread_cancel(endless);
  void* result = NULL;
  pthread_join(endless, &result);
  say(result == PTHREAD_CANCELED ? "joined the cancelled" : "wrong", 0);
  pthread_cancel(sleeper);
  pthread_join(sleeper, &result);
  say(result == PTHREAD_CANCELED ? "joined the sleeper" : "wrong", 0);
  pthread_mutex_t checked;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checked, &attributes);
  pthread_mutex_lock(&checked);
  say(pthread_mutex_lock(&checked) == EDEADLK ? "deadlock refused" : "wrong", 0);
  return 0;
}
