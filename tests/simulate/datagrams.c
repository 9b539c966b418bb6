/* Datagrams to a multicast group, and an answer by the address of a completion. */
#include "check.h"

int main(void) {
  struct ibv_context* context = open_sim();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  static char memory[4096] __attribute__((aligned(4096)));
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_cq* cqs[2];
  struct ibv_qp* qps[2];
  for (int i = 0; i < 2; ++i) {
    CHECK((cqs[i] = ibv_create_cq(context, 16, NULL, NULL, 0)) != NULL);
    struct ibv_qp_init_attr attr = {
        .send_cq = cqs[i], .recv_cq = cqs[i], .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    CHECK((qps[i] = ibv_create_qp(pd, &attr)) != NULL);
    CHECK(ibv_qp_to_qp_ex(qps[i]) == NULL); /* not created for ibv_wr_* */
    to_init(qps[i]);
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    CHECK(ibv_modify_qp(qps[i], &rtr, IBV_QP_STATE) == 0);
    CHECK(ibv_modify_qp(qps[i], &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    struct ibv_sge sge = {(uintptr_t)memory + 1024 * (i + 1), 1024, mr->lkey};
    struct ibv_recv_wr recv = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    CHECK(ibv_post_recv(qps[i], &recv, &bad) == 0);
  }
  struct ibv_port_attr port;
  CHECK(ibv_query_port(context, 1, &port) == 0);
  union ibv_gid group = {.raw = {0xff, 0x0e, [12] = 0xe6, 1, 2, 3}}, own;
  CHECK(ibv_query_gid(context, 1, 0, &own) == 0);
  CHECK(ibv_attach_mcast(qps[1], &own, 0) == EINVAL); /* no group */
  CHECK(ibv_attach_mcast(qps[1], &group, 0xc001) == 0);
  CHECK(ibv_detach_mcast(qps[0], &group, 0xc001) == EINVAL); /* not attached */
  CHECK(ibv_destroy_qp(qps[1]) == EBUSY);

  struct ibv_ah_attr to_group = {.dlid = 0xc001, .port_num = 1, .is_global = 1, .grh = {.dgid = group, .hop_limit = 1}};
  struct ibv_ah* ah = ibv_create_ah(pd, &to_group);
  CHECK(ah != NULL);
  strcpy(memory, "to all");
  struct ibv_sge sge = {(uintptr_t)memory, 7, mr->lkey};
  struct ibv_send_wr send = {.wr_id = 8,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {ah, 0xffffff, 0x1234}},
                     *bad = NULL;
  CHECK(ibv_post_send(qps[0], &send, &bad) == 0);
  await_wc(cqs[0], 8);
  struct ibv_wc wc = await_wc(cqs[1], 7);
  CHECK(wc.byte_len == 40 + 7 && (wc.wc_flags & IBV_WC_GRH) != 0 && strcmp(memory + 2048 + 40, "to all") == 0);

  /* The destination is the group's GID, which no port has; a GRH of its own is answered. */
  struct ibv_grh* grh = (struct ibv_grh*)(memory + 2048);
  struct ibv_ah_attr back;
  CHECK(ibv_init_ah_from_wc(context, 1, &wc, grh, &back) != 0);
  grh->dgid = own;
  CHECK(ibv_init_ah_from_wc(context, 1, &wc, grh, &back) == 0);
  CHECK(back.is_global == 1 && back.grh.sgid_index == 0 && memcmp(&back.grh.dgid, &own, sizeof own) == 0 &&
        back.dlid == wc.slid);
  struct ibv_ah* answer = ibv_create_ah_from_wc(pd, &wc, grh, 1);
  CHECK(answer != NULL);
  strcpy(memory, "back");
  send.wr.ud = (__typeof__(send.wr.ud)){answer, wc.src_qp, 0x1234};
  CHECK(wc.src_qp == qps[0]->qp_num && ibv_post_send(qps[1], &send, &bad) == 0);
  await_wc(cqs[1], 8);
  await_wc(cqs[0], 7);
  CHECK(strcmp(memory + 1024 + 40, "back") == 0);

  send.wr.ud.ah = NULL;
  CHECK(ibv_post_send(qps[1], &send, &bad) == EINVAL && bad == &send);
  CHECK(ibv_detach_mcast(qps[1], &group, 0xc001) == 0 && ibv_destroy_qp(qps[1]) == 0);
  puts("ok");
  return 0;
}
