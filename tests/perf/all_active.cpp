#include "tests/perf/all_active.hpp"

#include <bit>
#include <vector>

#include "common/error.hpp"
#include "machine/memory.hpp"
#include "verbs/resources.hpp"
#include "wire/verb.hpp"

namespace verbscope::test {
namespace {

constexpr Bytes kRegion(64 << 10);  // of each machine: read, or written to, line after line

Profile profile_with_cores(int cores) {
  Profile profile = load_profile("cib");
  profile.host.cores = cores;
  return profile;
}

int ports_of(const Device& device) {
  return device.attributes().phys_port_cnt;
}

}  // namespace

SimWork shared_out(int nodes, std::size_t partitions, std::size_t threads) {
  SimWork work{.threads = threads};
  for (int i = 0; i < nodes; ++i) {
    work.partitions.push_back(static_cast<std::size_t>(i) * partitions / static_cast<std::size_t>(nodes));
  }
  return work;
}

// One QP and the one work request that it posts again and again: two cache lines that every READ looks at, since it is
// the simulator's memory that is to be measured.
struct alignas(64) AllActive::Lane {
  Lane(const Pd& pd, ibv_cq* cq, int window)
      : qp(pd, {.transport = Transport::rc,
                .send_cq = cq,
                .recv_cq = cq,
                .send_depth = window,
                .recv_depth = 1,
                .max_inline = AllActiveLoad::bytes,
                .signal_all = true}) {}

  void post() {
    wr.wr.rdma.remote_addr = remote + offset;
    offset = (offset + AllActiveLoad::bytes) % kRegion.value;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(qp.get(), &wr, &bad); error != 0) fail("ibv_post_send: error {}", error);
  }

  ibv_send_wr wr{};
  ibv_sge sge{};
  std::uint64_t remote = 0;  // region of the peer
  std::uint64_t offset = 0;
  Qp qp;
};

struct alignas(64) AllActive::Thread {
  Thread(const Device& device, const Pd& pd, const AllActiveLoad& load)
      : window(load.window),
        cq(device, load.qps * load.window),
        done(static_cast<std::size_t>(load.qps * load.window)) {
    lanes.reserve(static_cast<std::size_t>(load.qps));
    for (int i = 0; i < load.qps; ++i) lanes.emplace_back(pd, cq.get(), load.window);
  }

  void run(SimNode& node, std::uint64_t operations) {
    std::uint64_t posted = 0;
    for (int i = 0; i < window; ++i) {
      for (Lane& lane : lanes) {
        if (posted++ < operations) lane.post();
      }
    }
    while (completed < operations) {
      const int count = ibv_poll_cq(cq.get(), static_cast<int>(done.size()), done.data());
      if (count < 0) fail("ibv_poll_cq: error {}", count);
      for (int i = 0; i < count; ++i) {
        const ibv_wc& wc = done[static_cast<std::size_t>(i)];
        if (wc.status != IBV_WC_SUCCESS) fail("an operation ended with {}", ibv_wc_status_str(wc.status));
        if (posted++ < operations) lanes[wc.wr_id].post();
      }
      completed += static_cast<std::uint64_t>(count);
      if (count == 0) node.idle();
    }
  }

  int window;
  Cq cq;
  std::vector<ibv_wc> done;
  std::vector<Lane> lanes;
  std::uint64_t completed = 0;
};

struct AllActive::Machine {
  Machine(Provider& provider, const AllActiveLoad& load)
      : device(provider, ""),
        pd(device),
        memory(kRegion, false),
        mr(pd, memory.data(), memory.size(),
           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) {
    for (int i = 0; i < AllActiveLoad::threads; ++i) threads.emplace_back(device, pd, load);
  }

  // Towards the same lane of `peer`.
  void connect(std::size_t thread, std::size_t number, const AllActiveLoad& load, Machine& peer) {
    Lane& lane = threads[thread].lanes[number];
    const auto port = static_cast<std::uint8_t>(1 + number % static_cast<std::size_t>(ports_of(device)));
    const std::uint16_t lid = peer.device.port_attributes().lid;
    lane.qp.to_init({.port = port});
    lane.qp.to_rtr({.path = {.port = port, .lid = lid},
                    .mtu = IBV_MTU_4096,
                    .peer_qpn = peer.threads[thread].lanes[number].qp.number(),
                    .max_dest_rd_atomic = kMostReads});
    lane.qp.to_rts({.max_rd_atomic = kMostReads});
    const std::size_t place = thread * static_cast<std::size_t>(load.qps) + number;
    lane.sge = {reinterpret_cast<std::uint64_t>(memory.data()) + place * AllActiveLoad::bytes, AllActiveLoad::bytes,
                mr.lkey()};
    lane.wr.wr_id = number;
    lane.wr.sg_list = &lane.sge;
    lane.wr.num_sge = 1;
    lane.wr.opcode = load.opcode;
    if (load.opcode == IBV_WR_RDMA_WRITE) lane.wr.send_flags = IBV_SEND_INLINE;
    lane.wr.wr.rdma.rkey = peer.mr.rkey();
    lane.remote = reinterpret_cast<std::uint64_t>(peer.memory.data());
    lane.offset = place * AllActiveLoad::bytes;
  }

  Device device;
  Pd pd;
  Buffer memory;
  Mr mr;
  std::deque<Thread> threads;
};

AllActive::AllActive(const AllActiveLoad& load)
    : load_(load), cluster_(profile_with_cores(AllActiveLoad::threads), load.nodes, 1, load.work) {
  if (load.nodes < 2 || !std::has_single_bit(static_cast<unsigned>(load.nodes))) {
    fail("{} nodes: expected a power of two, 2 or more", load.nodes);
  }
  if (load.qps < 1 || load.window < 1 || load.window > static_cast<int>(kMostReads)) {
    fail("{} QPs with {} READs: expected 1 or more, with 1 to {}", load.qps, load.window, kMostReads);
  }
  for (int i = 0; i < load.nodes; ++i) machines_.emplace_back(cluster_.provider(i), load);
  connect();
}

AllActive::~AllActive() = default;

// Each QP of a node goes to another node, and the same QP of that node to it: their numbers differ in bits that only
// depend on the QP.
void AllActive::connect() {
  const std::size_t nodes = machines_.size();
  const auto qps = static_cast<std::size_t>(load_.qps);
  for (std::size_t node = 0; node < nodes; ++node) {
    for (std::size_t thread = 0; thread < AllActiveLoad::threads; ++thread) {
      for (std::size_t qp = 0; qp < qps; ++qp) {
        const std::size_t distance = 1 + (thread * qps + qp) % (nodes - 1);
        machines_[node].connect(thread, qp, load_, machines_[node ^ distance]);
      }
    }
  }
}

std::uint64_t AllActive::run() {
  for (std::size_t node = 0; node < machines_.size(); ++node) {
    for (std::size_t i = 0; i < AllActiveLoad::threads; ++i) {
      Thread& thread = machines_[node].threads[i];
      cluster_.add_thread(static_cast<int>(node), static_cast<int>(i),
                          [this, &thread](SimNode& sim_node) { thread.run(sim_node, load_.operations); });
    }
  }
  cluster_.run();
  std::uint64_t operations = 0;
  for (const Machine& machine : machines_) {
    for (const Thread& thread : machine.threads) operations += thread.completed;
  }
  return operations;
}

}  // namespace verbscope::test
