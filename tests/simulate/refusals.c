/* What the device does not have says so by the errno of the manual pages, and wrong requests are refused. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

/* Programs that open libibverbs by dlopen() find the same device. */
static void check_dynamic_symbols(void) {
  void* library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  void* get = dlsym(library, "ibv_get_device_list");
  CHECK(get == (void*)&ibv_get_device_list && dlvsym(RTLD_DEFAULT, "ibv_get_device_list", "IBVERBS_1.1") == get);
  CHECK(dlsym(library, "ibv_wc_status_str") != NULL); /* libibverbs' own */
  CHECK(dlsym(library, "ibv_no_such_function") == NULL);
}

static void check_files(void) {
  struct stat status;
  char link[64] = "";
  CHECK(stat("/dev/infiniband/uverbs0", &status) == 0 && S_ISCHR(status.st_mode));
  CHECK(access("/dev/infiniband/uverbs0", R_OK | W_OK) == 0);
  CHECK(access("/sys/class/infiniband/sim0/hca_type", F_OK) == 0);
  CHECK(readlink("/sys/class/infiniband/sim0/device/driver", link, sizeof link - 1) > 0);
  CHECK(strcmp(strrchr(link, '/'), "/mlx5_core") == 0);
  CHECK(stat("/sys/class/infiniband/sim0/nothing", &status) == -1 && errno == ENOENT);
  CHECK(stat(".", &status) == 0 && S_ISDIR(status.st_mode));
}

static void check_objects(struct ibv_context* context, struct ibv_pd* pd, struct ibv_qp* qp) {
  struct ibv_ece ece = {0};
  CHECK(ibv_query_ece(qp, &ece) == EOPNOTSUPP && ibv_set_ece(qp, &ece) == EOPNOTSUPP);
  REFUSED(ibv_import_device(0), EOPNOTSUPP);
  REFUSED(ibv_import_pd(context, 1), EOPNOTSUPP);
  REFUSED(ibv_import_mr(pd, 1), EOPNOTSUPP);
  REFUSED(ibv_import_dm(context, 1), EOPNOTSUPP);
  REFUSED(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP);
  REFUSED(ibv_alloc_null_mr(pd), EOPNOTSUPP);
  struct ibv_flow_attr flow = {0};
  REFUSED(ibv_create_flow(qp, &flow), EOPNOTSUPP);
  struct ibv_counters_init_attr counters = {0};
  REFUSED(ibv_create_counters(context, &counters), EOPNOTSUPP);
  struct ibv_alloc_dm_attr dm = {.length = 64};
  REFUSED(ibv_alloc_dm(context, &dm), EOPNOTSUPP);
  struct ibv_wq_init_attr wq = {0};
  REFUSED(ibv_create_wq(context, &wq), EOPNOTSUPP);
  struct ibv_qp_rate_limit_attr rate = {0};
  CHECK(ibv_modify_qp_rate_limit(qp, &rate) == EOPNOTSUPP);
  CHECK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0) == EOPNOTSUPP);
  CHECK(ibv_fork_init() == 0 && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
  CHECK(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) == 1);
  CHECK(ibv_query_qp_data_in_order(qp, IBV_WR_ATOMIC_CMP_AND_SWP, 0) == 0);
  REFUSED(ibv_reg_mr(pd, (void*)64, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT); /* no memory */
  REFUSED(ibv_reg_mr(pd, &ece, sizeof ece, IBV_ACCESS_REMOTE_WRITE), EINVAL);
}

static void check_requests(struct ibv_qp* qp) {
  static struct ibv_sge sges[1000];
  struct ibv_send_wr wrs[2] = {{.wr_id = 1, .sg_list = sges, .num_sge = 0, .opcode = IBV_WR_RDMA_WRITE},
                               {.wr_id = 2, .sg_list = sges, .num_sge = 1000, .opcode = IBV_WR_RDMA_WRITE}},
                     *bad = NULL;
  wrs[0].next = &wrs[1];
  CHECK(ibv_post_send(qp, wrs, &bad) == EINVAL && bad == &wrs[1]);
  wrs[1].num_sge = -1;
  CHECK(ibv_post_send(qp, &wrs[1], &bad) == EINVAL && bad == &wrs[1]);
  struct ibv_recv_wr recv = {.wr_id = 3, .sg_list = sges, .num_sge = 1000}, *bad_recv = NULL;
  CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
}

static void check_events(struct ibv_context* context) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  CHECK(channel != NULL && fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  int mark = 0;
  struct ibv_cq *cq = ibv_create_cq(context, 4, &mark, channel, context->num_comp_vectors - 1), *of = NULL;
  void* cq_context = NULL;
  CHECK(cq != NULL && cq->cq_context == &mark);
  CHECK(ibv_get_cq_event(channel, &of, &cq_context) == -1 && errno == EAGAIN);
  REFUSED(ibv_create_cq(context, 4, NULL, channel, context->num_comp_vectors), EINVAL);
  CHECK(ibv_destroy_comp_channel(channel) == EBUSY && ibv_destroy_cq(cq) == 0 &&
        ibv_destroy_comp_channel(channel) == 0);
}

int main(void) {
  check_dynamic_symbols();
  check_files();
  struct ibv_context* context = open_sim();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(pd, &attr);
  CHECK(pd != NULL && cq != NULL && qp != NULL);
  check_objects(context, pd, qp);
  to_init(qp);
  connect_qp(qp, qp->qp_num, 1, 1);
  check_requests(qp);
  check_events(context);
  puts("ok");
  return 0;
}
