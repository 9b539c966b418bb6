// Two nodes that write to each other's memory in turn, and watch it without a call, as ib_write_lat does. They know each
// other's LID and QP number, and so need no sockets. Prints what the time stamp counter shows.
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

struct Place {
  uint64_t address;
  uint32_t key;
};

static struct {
  volatile uint64_t from_peer;
  uint64_t to_peer;
  struct Place own;
  struct Place peers;
} memory;

static struct ibv_qp* qp;
static struct ibv_cq* cq;
static struct ibv_mr* mr;

static void expect(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static void complete(void) {
  struct ibv_wc wc;
  int polled = 0;
  while (polled == 0) polled = ibv_poll_cq(cq, 1, &wc);
  expect(polled == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
}

static void post(enum ibv_wr_opcode opcode, void* data, unsigned bytes) {
  struct ibv_sge sge = {(uintptr_t)data, bytes, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad = NULL;
  wr.wr.rdma.remote_addr = memory.peers.address;
  wr.wr.rdma.rkey = memory.peers.key;
  expect(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
}

int main(int arguments, char** argument) {
  const int node = arguments > 1 ? atoi(argument[1]) : 0, rounds = 300;
  struct ibv_device** const devices = ibv_get_device_list(NULL);
  struct ibv_context* const context = ibv_open_device(devices[0]);
  expect(context != NULL, "ibv_open_device");
  struct ibv_pd* const pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  mr = ibv_reg_mr(pd, &memory, sizeof memory, access);
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
  qp = ibv_create_qp(pd, &init);
  expect(qp != NULL, "ibv_create_qp");
  struct ibv_port_attr port;
  ibv_query_port(context, 1, &port);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)access};
  expect(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  struct ibv_sge sge = {(uintptr_t)&memory.peers, sizeof memory.peers, mr->lkey};
  struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad = NULL;
  expect(ibv_post_recv(qp, &recv, &bad) == 0, "ibv_post_recv");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = qp->qp_num,
                              .max_dest_rd_atomic = 1, .min_rnr_timer = 12};
  attr.ah_attr.dlid = (uint16_t)(port.lid == 1 ? 2 : 1);
  attr.ah_attr.port_num = 1;
  expect(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  expect(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                      IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
  memory.own = (struct Place){(uintptr_t)&memory, mr->rkey};
  if (node == 0) complete();
  post(IBV_WR_SEND, &memory.own, sizeof memory.own);
  complete();
  if (node == 1) complete();

  uint64_t least = UINT64_MAX, most = 0, sum = 0;
  for (uint64_t round = 1; round <= (uint64_t)rounds; ++round) {
    const uint64_t begin = __rdtsc();
    for (int step = 0; step < 2; ++step) {
      if (step == node) {
        while (memory.from_peer < round) {
        }
      } else {
        memory.to_peer = round;
        post(IBV_WR_RDMA_WRITE, &memory.to_peer, sizeof memory.to_peer);
        complete();
      }
    }
    const uint64_t took = __rdtsc() - begin;
    sum += took;
    if (took < least) least = took;
    if (took > most) most = took;
  }
  printf("node %d: least %lu most %lu sum %lu cycles\n", node, least, most, sum);
  return 0;
}
