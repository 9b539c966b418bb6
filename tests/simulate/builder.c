/* Posts with ibv_wr_*: what is written arrives, and errors are told by ibv_wr_complete(). */
#include "check.h"

int main(void) {
  struct ibv_context* context = open_sim();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  static char memory[4096] __attribute__((aligned(4096)));
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  CHECK(pd != NULL && mr != NULL && cq != NULL);
  struct ibv_qp* qps[2];
  for (int i = 0; i < 2; ++i) {
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {16, 16, 2, 2, 64},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
    CHECK((qps[i] = ibv_create_qp_ex(context, &attr)) != NULL);
    to_init(qps[i]);
  }
  for (int i = 0; i < 2; ++i) connect_qp(qps[i], qps[1 - i]->qp_num, 1, 1);

  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(qps[0]);
  CHECK(qp != NULL && &qp->qp_base == qps[0]);
  CHECK(qp->wr_rdma_read == NULL && qp->wr_bind_mw == NULL && qp->wr_set_ud_addr == NULL); /* not asked for */

  char text[] = "inline";
  strcpy(memory, "hello");
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = 0;
  ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory + 1024);
  ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 6);
  qp->wr_id = 2;
  ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory + 2048);
  ibv_wr_set_inline_data(qp, text, sizeof text);
  qp->wr_id = 3;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_fetch_add(qp, mr->rkey, (uintptr_t)memory + 3072, 5);
  ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory + 512, 8);
  memset(text, 'x', sizeof text); /* inline data have been copied */
  CHECK(ibv_wr_complete(qp) == 0);
  await_wc(cq, 3);
  uint64_t sum = 0;
  memcpy(&sum, memory + 3072, sizeof sum);
  CHECK(strcmp(memory + 1024, "hello") == 0 && strcmp(memory + 2048, "inline") == 0 && sum == 5);

  ibv_wr_start(qp); /* more inline data than the QP has room for */
  ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory);
  ibv_wr_set_inline_data(qp, memory, 65);
  CHECK(ibv_wr_complete(qp) == ENOMEM);
  ibv_wr_start(qp); /* more requests than the queue has places */
  for (int i = 0; i < 17; ++i) {
    ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory);
    ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 4);
  }
  CHECK(ibv_wr_complete(qp) == ENOMEM);
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_abort(qp);
  struct ibv_wc wc;
  CHECK(ibv_poll_cq(cq, 1, &wc) == 0); /* none of these was posted */

  CHECK(ibv_destroy_cq(cq) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
  CHECK(ibv_destroy_qp(qps[0]) == 0 && ibv_destroy_qp(qps[1]) == 0 && ibv_destroy_cq(cq) == 0);
  CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("ok");
  return 0;
}
