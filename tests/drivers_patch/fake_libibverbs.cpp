// Stands in the place of libibverbs.so.1 in the tests of whole processes: one device, "fake0", whose queues accept
// everything and complete it at once. It has the names and versions that programs are linked to, and as in rdma-core 44
// the older version of a name calls the newer one through the dynamic linker, where a preloaded library may stand.
//
// If FAKE_MLX5 names a folder in place of the device's in /sys, the device is an mlx5: it writes the control
// segment of a signaled SEND with one element for each request, which mlx5dv_init_obj tells of. FAKE_MLX5_BYTES: its
// size, if another.
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

namespace {

// As with a provider's, a child finds its lock held if a thread of the parent held it at the fork.
struct FakeCq : ibv_cq {
  std::mutex mutex;
  std::deque<ibv_wc> waiting;
};

struct FakeQp : ibv_qp {
  static constexpr unsigned kBlocks = 64;
  alignas(64) unsigned char queue[kBlocks * 64];
  std::uint32_t record[2];
  unsigned posted;
};

void write_wqe(FakeQp& qp) {
  const char* const bytes = std::getenv("FAKE_MLX5_BYTES");
  const unsigned units = (bytes == nullptr ? 32u : static_cast<unsigned>(std::atoi(bytes))) / 16;
  unsigned char* const wqe = &qp.queue[qp.posted % FakeQp::kBlocks * 64];
  const auto byte_of = [](unsigned number, unsigned at) { return static_cast<unsigned char>(number >> 8 * at); };
  const unsigned char control[16] = {0,
                                     byte_of(qp.posted, 1),
                                     byte_of(qp.posted, 0),
                                     0x0a,
                                     byte_of(qp.qp_num, 2),
                                     byte_of(qp.qp_num, 1),
                                     byte_of(qp.qp_num, 0),
                                     byte_of(units, 0),
                                     0,
                                     0,
                                     0,
                                     0x08};
  std::memcpy(wqe, control, sizeof control);
  ++qp.posted;
  auto* const record = reinterpret_cast<unsigned char*>(&qp.record[1]);
  record[2] = byte_of(qp.posted, 1);
  record[3] = byte_of(qp.posted, 0);
}

std::atomic<std::uint32_t> next_number = 1;
ibv_device device{};
ibv_device* devices[] = {&device, nullptr};

// A request with this number ends the process, as a provider's callback into the program may.
constexpr std::uint64_t kExit = 0xe817;

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
  auto& cq = *static_cast<FakeCq*>(qp->send_cq);
  for (; wr != nullptr; wr = wr->next) {
    if (wr->wr_id == kExit) std::exit(7);
    const std::lock_guard guard(cq.mutex);
    write_wqe(*static_cast<FakeQp*>(qp));
    ibv_wc wc{};
    wc.wr_id = wr->wr_id;
    wc.qp_num = qp->qp_num;
    cq.waiting.push_back(wc);
  }
  return 0;
}

int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) {
  return 0;
}

int poll_cq(ibv_cq* base, int entries, ibv_wc* wc) {
  auto& cq = *static_cast<FakeCq*>(base);
  const std::lock_guard guard(cq.mutex);
  int polled = 0;
  for (; polled < entries && !cq.waiting.empty(); cq.waiting.pop_front()) wc[polled++] = cq.waiting.front();
  return polled;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED ibv_device** ibv_get_device_list(int* count) {
  std::strcpy(device.name, "fake0");
  const char* const folder = std::getenv("FAKE_MLX5");
  if (folder != nullptr) std::strncpy(device.ibdev_path, folder, sizeof device.ibdev_path - 1);
  if (count != nullptr) *count = 1;
  return devices;
}
EXPORTED void ibv_free_device_list(ibv_device**) {}
EXPORTED const char* ibv_get_device_name(ibv_device* of) {
  return of->name;
}

EXPORTED ibv_context* ibv_open_device(ibv_device* of) {
  auto* const table = new verbs_context{};
  table->sz = sizeof *table;
  table->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  table->context.device = of;
  table->context.ops.post_send = post_send;
  table->context.ops.post_recv = post_recv;
  table->context.ops.poll_cq = poll_cq;
  return &table->context;
}
EXPORTED int ibv_close_device(ibv_context* context) {
  delete reinterpret_cast<verbs_context*>(reinterpret_cast<char*>(context) - offsetof(verbs_context, context));
  return 0;
}
EXPORTED ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return new ibv_pd{context, 0};
}
EXPORTED int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}
EXPORTED ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int) {
  return new ibv_mr{pd->context, pd, address, length, 0, 1, 1};
}
EXPORTED ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t, unsigned) {
  return ibv_reg_mr(pd, address, length, 0);
}
EXPORTED int ibv_dereg_mr(ibv_mr* mr) {
  delete mr;
  return 0;
}
EXPORTED ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel*, int) {
  auto* const cq = new FakeCq{};
  cq->context = context;
  return cq;
}
EXPORTED int ibv_destroy_cq(ibv_cq* cq) {
  delete static_cast<FakeCq*>(cq);
  return 0;
}
EXPORTED ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  auto* const qp = new FakeQp{};
  qp->context = pd->context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->qp_type = attr->qp_type;
  qp->qp_num = next_number++;
  return qp;
}
EXPORTED int ibv_query_qp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) {
  return ENOSYS;
}
EXPORTED int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) {
  return 0;
}
EXPORTED int ibv_destroy_qp(ibv_qp* qp) {
  delete static_cast<FakeQp*>(qp);
  return 0;
}
EXPORTED int mlx5dv_init_obj(mlx5dv_obj* object, std::uint64_t type) {
  if (type != MLX5DV_OBJ_QP) return EINVAL;
  auto& qp = *static_cast<FakeQp*>(object->qp.in);
  object->qp.out->sq = {qp.queue, FakeQp::kBlocks, 64};
  object->qp.out->dbrec = qp.record;
  return 0;
}

// The name of before 1.1, for programs that were linked to it.
EXPORTED ibv_context* fake_open_device_1_0(ibv_device* of) {
  return ibv_open_device(of);
}
asm(".symver fake_open_device_1_0, ibv_open_device@IBVERBS_1.0");
