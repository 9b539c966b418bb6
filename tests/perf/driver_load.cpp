// A program of verbs on the null device that drivers_patch/ counts: `driver_load HOW OPERATIONS [uncounted]`, for the
// instructions of a work request and of a completion. HOW: single, list_16, builder, poll_1, poll_16.
#include <infiniband/verbs.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "drivers_patch/objects.hpp"
#include "verbs/null/provider.hpp"
#include "verbs/resources.hpp"

namespace {

using namespace verbscope;

constexpr int kList = 16;

struct Load {
  Load() {
    driver::start_counting("", 64 << 20, driver::usual_facts(NicFamily::mlx5, false));
    driver::attach_context(*device.get(), {.family = NicFamily::mlx5});
    driver::attach_cq(*cq.get());
    driver::attach_qp(*qp.get(), qp.builder(), {}, false, 4096);
    qp.to_init({});
    qp.to_rtr({});
    qp.to_rts({});
    for (int i = 0; i < kList; ++i) {
      sges[i] = {.addr = 4096u * static_cast<unsigned>(i), .length = 64, .lkey = 0};
      list[i].sg_list = &sges[i];
      list[i].num_sge = 1;
      list[i].opcode = IBV_WR_RDMA_WRITE;
      list[i].next = i + 1 < kList ? &list[i + 1] : nullptr;
    }
    list[kList - 1].send_flags = IBV_SEND_SIGNALED;
  }

  QpOptions options() {
    return {.transport = Transport::rc, .send_cq = cq.get(), .recv_cq = cq.get(), .send_depth = 64, .builder = true};
  }

  // One of a list of 16, the last of which alone is signaled.
  void post_single() {
    ibv_send_wr* bad = nullptr;
    for (ibv_send_wr wr : list) {
      wr.next = nullptr;
      if (ibv_post_send(qp.get(), &wr, &bad) != 0) std::abort();
    }
  }
  void post_list() {
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp.get(), list.data(), &bad) != 0) std::abort();
  }
  void build() {
    ibv_qp_ex* const builder = qp.builder();
    ibv_wr_start(builder);
    for (const ibv_sge& sge : sges) {
      builder->wr_flags = &sge == &sges[kList - 1] ? IBV_SEND_SIGNALED : 0;
      ibv_wr_rdma_write(builder, 0, 0);
      ibv_wr_set_sge(builder, 0, sge.addr, sge.length);
    }
    if (ibv_wr_complete(builder) != 0) std::abort();
  }
  void post_signaled() {
    for (ibv_send_wr& each : list) each.send_flags = IBV_SEND_SIGNALED;
    post_list();
  }
  // Takes the completions of a list, at most so many at once, and does not poll when there is none.
  void poll(int completions, int most) {
    std::array<ibv_wc, kList> wc;
    while (completions > 0) completions -= ibv_poll_cq(cq.get(), most, wc.data());
  }

  NullProvider provider;
  Device device{provider, "null0:1"};
  Pd pd{device};
  Cq cq{device, 64};
  Qp qp{pd, options()};
  std::array<ibv_sge, kList> sges{};
  std::array<ibv_send_wr, kList> list{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string how = argv[1];
  Load load;
  for (long left = std::atol(argv[2]); left > 0; left -= kList) {
    if (how == "single") load.post_single();
    if (how == "list_16") load.post_list();
    if (how == "builder") load.build();
    const bool polls = how == "poll_1" || how == "poll_16";
    if (polls) load.post_signaled();
    load.poll(polls ? kList : 1, how == "poll_16" ? kList : 1);
  }
  std::puts("done");
}
