/* What the programs of verbs_test.py share: checks, and a device with two RC queue pairs connected to each other. */
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                              \
  do {                                                                                                                \
    if (!(condition)) {                                                                                               \
      fprintf(stderr, "%s:%d: %s is false, errno %d (%s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
      exit(1);                                                                                                        \
    }                                                                                                                 \
  } while (0)

/* The call returns null and sets errno. */
#define REFUSED(call, error) \
  do {                       \
    errno = 0;               \
    CHECK((call) == NULL);   \
    CHECK(errno == (error)); \
  } while (0)

static inline struct ibv_context* open_sim(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  CHECK(list != NULL && count == 1 && strcmp(ibv_get_device_name(list[0]), "sim0") == 0);
  struct ibv_context* context = ibv_open_device(list[0]);
  CHECK(context != NULL);
  ibv_free_device_list(list);
  return context;
}

/* Polls until a completion arrives, and checks it. */
static inline struct ibv_wc await_wc(struct ibv_cq* cq, uint64_t id) {
  struct ibv_wc wc;
  int polled = 0;
  while ((polled = ibv_poll_cq(cq, 1, &wc)) == 0) {
  }
  CHECK(polled == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == id);
  return wc;
}

static inline void to_init(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qkey = 0x1234,
                             .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                                IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
  const int last = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last) == 0);
}

/* From INIT to RTS, with the peer on the same node. `sends`, `receives`: as the type of the QP does. */
static inline void connect_qp(struct ibv_qp* qp, uint32_t peer, int sends, int receives) {
  struct ibv_port_attr port;
  union ibv_gid gid;
  CHECK(ibv_query_port(qp->context, 1, &port) == 0 && ibv_query_gid(qp->context, 1, 0, &gid) == 0);
  struct ibv_qp_attr rtr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = port.active_mtu,
      .dest_qp_num = peer,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.dlid = port.lid, .port_num = 1, .is_global = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
  CHECK(ibv_modify_qp(qp, &rtr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          (receives ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  CHECK(ibv_modify_qp(qp, &rts,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                          (sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0);
}
