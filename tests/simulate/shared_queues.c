/* XRC: a message to a shared queue of a domain, whose receiving QP another handle opens, and events of shared queues.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>

#include "check.h"

int main(void) {
  struct ibv_context* context = open_sim();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  static char memory[4096] __attribute__((aligned(4096)));
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  const int file = open("/tmp", O_RDONLY | O_TMPFILE | O_RDWR, 0600);
  CHECK(file >= 0);
  struct ibv_xrcd_init_attr domain = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, file, 0};
  REFUSED(ibv_open_xrcd(context, &domain), EAGAIN); /* there is no domain of the file */
  domain.oflags = O_CREAT;
  struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &domain), *again = ibv_open_xrcd(context, &domain);
  CHECK(xrcd != NULL && again != NULL && ibv_close_xrcd(again) == 0);

  struct ibv_srq_init_attr_ex shared = {
      .attr = {16, 1, 0},
      .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
      .srq_type = IBV_SRQT_XRC,
      .pd = pd,
      .xrcd = xrcd,
      .cq = cq};
  struct ibv_srq* srq = ibv_create_srq_ex(context, &shared);
  uint32_t number = 0;
  CHECK(srq != NULL && ibv_get_srq_num(srq, &number) == 0);
  CHECK(ibv_close_xrcd(xrcd) == EBUSY);

  struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
  struct ibv_qp_init_attr_ex source = {.send_cq = cq,
                                       .cap = {4, 0, 1, 0, 0},
                                       .qp_type = IBV_QPT_XRC_SEND,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND};
  struct ibv_qp *receiver = ibv_create_qp_ex(context, &target), *sender = ibv_create_qp_ex(context, &source);
  CHECK(receiver != NULL && sender != NULL);
  struct ibv_qp_open_attr open_attr = {IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                                       receiver->qp_num, xrcd, NULL, IBV_QPT_XRC_RECV};
  struct ibv_qp* handle = ibv_open_qp(context, &open_attr);
  CHECK(handle != NULL && handle->qp_num == receiver->qp_num);
  open_attr.qp_num = sender->qp_num;
  REFUSED(ibv_open_qp(context, &open_attr), EINVAL);
  to_init(handle);
  to_init(sender);
  connect_qp(handle, sender->qp_num, 0, 1);
  connect_qp(sender, receiver->qp_num, 1, 0);

  struct ibv_sge to = {(uintptr_t)memory + 1024, 64, mr->lkey};
  struct ibv_recv_wr recv = {.wr_id = 7, .sg_list = &to, .num_sge = 1}, *bad_recv = NULL;
  CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
  struct ibv_srq_attr limit = {.srq_limit = 1};
  CHECK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
  strcpy(memory, "shared");
  struct ibv_qp_ex* post = ibv_qp_to_qp_ex(sender);
  ibv_wr_start(post);
  post->wr_id = 8;
  ibv_wr_send(post);
  ibv_wr_set_xrc_srqn(post, number);
  ibv_wr_set_sge(post, mr->lkey, (uintptr_t)memory, 7);
  CHECK(ibv_wr_complete(post) == 0);
  const struct ibv_wc wc = await_wc(cq, 7);
  CHECK(wc.byte_len == 7 && strcmp(memory + 1024, "shared") == 0);

  /* The queue has fewer RECVs than its limit. */
  struct ibv_async_event event;
  CHECK(ibv_get_async_event(context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
  CHECK(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
  CHECK(ibv_get_async_event(context, &event) == -1 && errno == EAGAIN);
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = srq;
  ibv_ack_async_event(&event); /* else ibv_destroy_srq() would wait for it */

  CHECK(ibv_destroy_qp(handle) == 0 && ibv_destroy_qp(receiver) == 0 && ibv_destroy_qp(sender) == 0);
  CHECK(ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(xrcd) == 0 && ibv_destroy_cq(cq) == 0);
  CHECK(ibv_close_device(context) == 0); /* ends what is left, too */
  puts("ok");
  return 0;
}
