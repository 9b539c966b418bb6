#include "tests/harness/traced_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "drivers_patch/counter_report.hpp"
#include "drivers_patch/objects.hpp"
#include "microbench/run/call_counter.hpp"
#include "nic_sim/cluster.hpp"
#include "verbs/resources.hpp"

namespace verbscope::test {
namespace {

constexpr std::uint32_t kQkey = 0x1111;
constexpr std::size_t kMemory = 1 << 16;
constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kRecvDepth = 512;
constexpr int kSenders = 4;  // of the peer, if the program receives

void check(int error) {
  if (error != 0) throw std::runtime_error("verbs failed: " + std::to_string(error));
}

constexpr Transport transport_of(ibv_qp_type type) {
  return type == IBV_QPT_RC ? Transport::rc : type == IBV_QPT_UC ? Transport::uc : Transport::ud;
}

// A device with its memory.
struct Machine {
  explicit Machine(Provider& provider)
      : memory(new std::byte[kMemory + 4096]), device(provider, "sim0"), pd(device), mr(pd, base(), kMemory, kAccess) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::byte* base() const {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uint64_t>(memory.get()) + 4095) & ~std::uint64_t{4095});
  }
  ibv_cq* make_cq(int entries = 4096) { return cqs.emplace_back(device, entries).get(); }
  // The address of the node with this number.
  ibv_ah* make_ah(int node) {
    return ahs.emplace_back(pd, PathAddress{.lid = static_cast<std::uint16_t>(node + 1)}).get();
  }
  Qp& make_qp(ibv_qp_type type, ibv_cq* cq, int depth) {
    return qps.emplace_back(pd, QpOptions{.transport = transport_of(type),
                                          .send_cq = cq,
                                          .recv_cq = cq,
                                          .send_depth = depth,
                                          .recv_depth = kRecvDepth,
                                          .max_inline = 128});
  }

  // In the order of dependence: destroyed from the last.
  std::unique_ptr<std::byte[]> memory;
  Device device;
  Pd pd;
  Mr mr;
  std::deque<Cq> cqs;
  std::deque<Ah> ahs;
  std::deque<Qp> qps;
};

// Moves the QP to RTS, connected to the QP `peer` of the node with this number (ignored on UD).
void bring_up(Qp& qp, const Knobs& knobs, int node, std::uint32_t peer) {
  qp.to_init({.qkey = kQkey, .access = kAccess});
  qp.to_rtr({.path = {.lid = static_cast<std::uint16_t>(node + 1)},
             .mtu = knobs.mtu,
             .peer_qpn = peer,
             .max_dest_rd_atomic = 16,
             .min_rnr_timer = 1});
  qp.to_rts({.max_rd_atomic = static_cast<std::uint8_t>(knobs.reads_at_once)});
}

// A QP with its requests, and the number of outstanding ones.
struct Queue {
  ibv_qp* qp = nullptr;
  std::vector<ibv_send_wr> wrs;
  std::vector<ibv_sge> sges;
  std::size_t next = 0;
  int under_way = 0;
  int owed_recvs = 0;
};

// State of one thread of the program.
struct Thread {
  std::vector<Queue> queues;
  std::vector<ibv_cq*> cqs;
  std::uint32_t number = 0;  // in the trace
  std::uint64_t done = 0, done_at_begin = 0;
  Picos began{0}, ended{0};
};

Queue make_queue(const Knobs& knobs, ibv_qp* qp, const ibv_mr& mr, std::uint64_t remote, std::uint32_t rkey, ibv_ah* ah,
                 std::uint32_t peer) {
  Queue queue{.qp = qp, .wrs = {}, .sges = {}};
  // A whole number of rounds, so that signals are even; longer than a window, with the requested number of
  // addresses.
  const std::size_t ring = static_cast<std::size_t>(std::max(knobs.window, 512));
  queue.wrs.resize(ring);
  queue.sges.resize(ring);
  for (std::size_t i = 0; i < ring; ++i) {
    ibv_send_wr& wr = queue.wrs[i];
    queue.sges[i] = {.addr = reinterpret_cast<std::uint64_t>(mr.addr), .length = knobs.size, .lkey = mr.lkey};
    wr = {};
    wr.sg_list = &queue.sges[i];
    wr.num_sge = 1;
    wr.opcode = knobs.opcode;
    const bool signaled = static_cast<int>(i + 1) % knobs.signal_every == 0;
    wr.send_flags = (signaled ? unsigned{IBV_SEND_SIGNALED} : 0u) | (knobs.inlined ? unsigned{IBV_SEND_INLINE} : 0u);
    if (qp->qp_type == IBV_QPT_UD) {
      wr.wr.ud = {.ah = ah, .remote_qpn = peer, .remote_qkey = kQkey};
    } else if (knobs.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      const std::uint64_t place = i * 8 % (static_cast<std::size_t>(knobs.addresses) * 8) % 4096;
      wr.wr.atomic = {.remote_addr = remote + place, .compare_add = 1, .swap = 0, .rkey = rkey};
    } else {
      wr.wr.rdma = {.remote_addr = remote, .rkey = rkey};
    }
  }
  return queue;
}

void post_turn(const Knobs& knobs, Machine& machine, Queue& queue) {
  for (int left = knobs.turn; left > 0 && queue.under_way + knobs.list <= knobs.window; left -= knobs.list) {
    std::optional<Mr> mr;
    if (knobs.registers_each) mr.emplace(machine.pd, machine.base(), 4096, kAccess);
    ibv_send_wr* const first = &queue.wrs[queue.next];
    for (int i = 0; i < knobs.list; ++i) {
      ibv_send_wr& wr = queue.wrs[(queue.next + static_cast<std::size_t>(i)) % queue.wrs.size()];
      wr.next =
          i + 1 < knobs.list ? &queue.wrs[(queue.next + static_cast<std::size_t>(i) + 1) % queue.wrs.size()] : nullptr;
    }
    queue.next = (queue.next + static_cast<std::size_t>(knobs.list)) % queue.wrs.size();
    queue.under_way += knobs.list;
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(queue.qp, first, &bad));
  }
}

class Program {
 public:
  Program(const Knobs& knobs, const Profile& profile)
      : knobs_(knobs),
        cluster_(profile, 2, 1),
        counter_(cluster_.provider(0), driver::facts_of(profile.wire), false),
        own_(prepared()),
        peer_(cluster_.provider(1)) {
    for (int i = 0; i < knobs.spare_qps; ++i) own_.make_qp(knobs.type, own_.make_cq(), 16);
    ah_ = own_.make_ah(1);
    ah_back_ = peer_.make_ah(0);
    for (int t = 0; t < knobs.threads; ++t) make_thread();
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Ran run() {
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      cluster_.add_thread(0, static_cast<int>(t), [this, t](SimNode& node) {
        knobs_.receives ? receive(node, threads_[t]) : post(node, threads_[t]);
      });
    }
    for (std::size_t s = 0; s < senders_.size(); ++s) {
      cluster_.add_thread(1, static_cast<int>(s), [this, s](SimNode& node) { send(node, senders_[s]); });
    }
    cluster_.run();
    Ran ran{.mops = 0, .program = of_this_context(driver::summarize_process())};
    for (const Thread& thread : threads_) {
      ran.mops +=
          static_cast<double>(thread.done - thread.done_at_begin) / to_seconds(thread.ended - thread.began) * 1e-6;
    }
    return ran;
  }

 private:
  // Before the context is opened.
  Provider& prepared() {
    Provider& provider = cluster_.provider(0);
    if (load_profile(knobs_.cluster).wire.family != NicFamily::mlx5) return provider;
    const int needed = knobs_.spare_qps + knobs_.threads * knobs_.qps + 16;
    const int registers = knobs_.registers > 0 ? knobs_.registers : std::max(needed, 17) + 12;
    set_doorbell_registers(provider, "sim0", static_cast<std::uint32_t>(registers));
    return provider;
  }

  void make_thread() {
    Thread& thread = threads_.emplace_back();
    thread.number = driver::add_thread();
    // Each CQ has room for the RECVs of all QPs: one that is full is in error.
    for (int c = 0; c < knobs_.cqs; ++c) thread.cqs.push_back(own_.make_cq(4096 + knobs_.qps * kRecvDepth));
    for (int q = 0; q < knobs_.qps; ++q) {
      const std::size_t cq = static_cast<std::size_t>(q % knobs_.cqs);
      Qp& qp = own_.make_qp(knobs_.type, thread.cqs[cq], knobs_.window);
      ibv_cq* const peer_cq = peer_.make_cq();
      Qp& peer = peer_.make_qp(knobs_.type, peer_cq, 256);
      bring_up(qp, knobs_, 1, peer.number());
      bring_up(peer, knobs_, 0, qp.number());
      const auto remote = reinterpret_cast<std::uint64_t>(peer_.base());
      thread.queues.push_back(
          make_queue(knobs_, qp.get(), *own_.mr.get(), remote, peer_.mr.rkey(), ah_, peer.number()));
      if (!knobs_.receives) continue;
      post_recvs(thread, qp.get(), kRecvDepth);
      receivers_.push_back(qp.number());
    }
    if (knobs_.receives) add_senders();
  }

  // The peers send more than the program can receive.
  void add_senders() {
    Knobs knobs;
    knobs.size = knobs_.size;
    for (int s = 0; s < kSenders; ++s) {
      Thread& sender = senders_.emplace_back();
      sender.cqs.push_back(peer_.make_cq());
      for (const std::uint32_t to : receivers_) {
        Qp& qp = peer_.make_qp(IBV_QPT_UD, sender.cqs.front(), knobs.window);
        bring_up(qp, knobs, 0, 0);
        sender.queues.push_back(make_queue(knobs, qp.get(), *peer_.mr.get(), 0, 0, ah_back_, to));
      }
    }
  }

  void post_recvs(const Thread& thread, ibv_qp* qp, int count) {
    driver::set_thread(thread.number);
    std::array<ibv_recv_wr, 64> wrs{};
    ibv_sge sge{.addr = reinterpret_cast<std::uint64_t>(own_.base()), .length = 1024, .lkey = own_.mr->lkey};
    for (int left = count; left > 0; left -= knobs_.recv_list) {
      for (int i = 0; i < knobs_.recv_list; ++i) {
        wrs[static_cast<std::size_t>(i)] = {
            .wr_id = 0,
            .next = i + 1 < knobs_.recv_list ? &wrs[static_cast<std::size_t>(i) + 1] : nullptr,
            .sg_list = &sge,
            .num_sge = 1};
      }
      ibv_recv_wr* bad = nullptr;
      check(ibv_post_recv(qp, wrs.data(), &bad));
    }
  }

  // Threads of a simulated machine are fibers: the trace needs the number of the running one.
  static void be(Thread& thread) { driver::set_thread(thread.number); }

  void note(SimNode& node, Thread& thread) const {
    if (thread.began == Picos(0) && node.now() >= knobs_.run / 4) {
      thread.began = node.now();
      thread.done_at_begin = thread.done;
    }
    thread.ended = node.now();
  }

  void post(SimNode& node, Thread& thread) {
    std::array<ibv_wc, 64> wc;
    while (node.now() < knobs_.run) {
      for (std::size_t q = 0; q < thread.queues.size(); ++q) {
        be(thread);
        post_turn(knobs_, own_, thread.queues[q]);
        bool any = false;
        for (ibv_cq* cq : thread.cqs) {
          be(thread);
          const int polled = ibv_poll_cq(cq, static_cast<int>(wc.size()), wc.data());
          for (int i = 0; i < polled; ++i) take(thread, wc[static_cast<std::size_t>(i)]);
          any = any || polled > 0;
        }
        note(node, thread);
        const bool full = thread.queues[(q + 1) % thread.queues.size()].under_way + knobs_.list > knobs_.window;
        if (!any && full) node.idle();
      }
    }
  }

  static Queue& queue_of(Thread& thread, std::uint32_t qp_num) {
    return *std::ranges::find_if(thread.queues, [&](const Queue& queue) { return queue.qp->qp_num == qp_num; });
  }

  void take(Thread& thread, const ibv_wc& wc) const {
    check(wc.status);
    queue_of(thread, wc.qp_num).under_way -= knobs_.signal_every;
    thread.done += static_cast<std::uint64_t>(knobs_.signal_every);
  }

  void receive(SimNode& node, Thread& thread) {
    std::array<ibv_wc, 16> wc;
    while (node.now() < knobs_.run) {
      be(thread);
      const int polled = ibv_poll_cq(thread.cqs.front(), static_cast<int>(wc.size()), wc.data());
      if (polled == 0) node.idle_until(knobs_.run);
      for (int i = 0; i < polled; ++i) {
        check(wc[static_cast<std::size_t>(i)].status);
        Queue& queue = queue_of(thread, wc[static_cast<std::size_t>(i)].qp_num);
        if (++queue.owed_recvs < knobs_.recv_list) continue;
        post_recvs(thread, queue.qp, queue.owed_recvs);
        queue.owed_recvs = 0;
      }
      thread.done += static_cast<std::uint64_t>(polled);
      note(node, thread);
    }
  }

  void send(SimNode& node, Thread& thread) const {
    const Knobs usual;
    std::array<ibv_wc, 64> wc;
    while (node.now() < knobs_.run) {
      bool any = false;
      for (Queue& queue : thread.queues) {
        const int before = queue.under_way;
        post_turn(usual, const_cast<Machine&>(peer_), queue);
        any = any || queue.under_way > before;
      }
      const int polled = ibv_poll_cq(thread.cqs.front(), static_cast<int>(wc.size()), wc.data());
      for (int i = 0; i < polled; ++i) {
        queue_of(thread, wc[static_cast<std::size_t>(i)].qp_num).under_way -= usual.signal_every;
      }
      if (!any && polled == 0) node.idle_until(knobs_.run);
    }
  }

  // The counts of this program among those of the process.
  driver::Summary of_this_context(driver::Summary all) const {
    const std::uint32_t context = all.contexts.back().number;
    std::erase_if(all.uses, [&](const driver::QueueUse& use) { return all.qps[use.qp].context != context; });
    const auto is_own = [this](std::uint32_t number) {
      return std::ranges::any_of(threads_, [number](const Thread& thread) { return thread.number == number; });
    };
    std::erase_if(all.poll_uses, [&](const driver::PollUse& use) { return !is_own(use.thread); });
    all.shared_recv_uses.clear();
    all.contexts = {all.contexts.back()};
    return all;
  }

  const Knobs& knobs_;
  SimCluster cluster_;
  CallCounter counter_;
  Machine own_, peer_;
  ibv_ah *ah_ = nullptr, *ah_back_ = nullptr;
  std::deque<Thread> threads_, senders_;
  std::vector<std::uint32_t> receivers_;
};

}  // namespace

Ran run_program(const Knobs& knobs) {
  const Profile profile = load_profile(knobs.cluster);
  return Program(knobs, profile).run();
}

}  // namespace verbscope::test
