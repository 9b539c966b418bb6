/* ibv_destroy_cq() waits, in virtual time, until another thread has acknowledged the queue's event. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { kSleepUs = 2000 };

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void* acknowledge_later(void* cq) {
  usleep(kSleepUs);
  ibv_ack_cq_events(cq, 1);
  return NULL;
}

int main(void) {
  struct ibv_context* context = open_sim();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, channel, 0), *of = NULL;
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(pd, &attr);
  CHECK(qp != NULL);
  to_init(qp);
  connect_qp(qp, qp->qp_num, 1, 1);
  CHECK(ibv_req_notify_cq(cq, 0) == 0);
  struct ibv_send_wr empty = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad = NULL;
  CHECK(ibv_post_send(qp, &empty, &bad) == 0);
  void* cq_context = NULL;
  CHECK(ibv_get_cq_event(channel, &of, &cq_context) == 0 && of == cq);
  await_wc(cq, 1);
  CHECK(ibv_destroy_qp(qp) == 0);

  pthread_t thread;
  const double begin = now_us();
  CHECK(pthread_create(&thread, NULL, acknowledge_later, cq) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  const double waited = now_us() - begin;
  CHECK(waited >= kSleepUs && waited < kSleepUs + 100);
  CHECK(pthread_join(thread, NULL) == 0 && ibv_destroy_comp_channel(channel) == 0);
  puts("ok");
  return 0;
}
