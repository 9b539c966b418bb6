// The objects of the null device, which its control path (provider.cpp) creates and its data path (data_path.cpp) uses.
// Private to these two.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "wire/transport.hpp"

namespace verbscope {

struct NullQp;

// Threads share completion queues and hold the lock for some nanoseconds.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

struct NullCompletion {
  NullQp* qp;
  std::uint64_t wr_id;
  ibv_wc_opcode opcode;
  std::uint32_t byte_len;
  std::uint32_t position;  // number of work requests of its queue up to this one
};

// A queue of at most as many elements as `ring` has.
template <class T>
struct NullRing {
  std::vector<T> ring;
  std::size_t head = 0;   // the oldest element
  std::size_t count = 0;  // elements in the queue

  bool full() const { return count == ring.size(); }
  void push(const T& element) {
    const std::size_t tail = head + count;
    ring[tail < ring.size() ? tail : tail - ring.size()] = element;
    ++count;
  }
  T pop() {
    const T element = ring[head];
    head = head + 1 == ring.size() ? 0 : head + 1;
    --count;
    return element;
  }
};

// Completions that wait to be polled. The lock also guards the queues of the QPs that complete here.
struct NullCq : ibv_cq, NullRing<NullCompletion> {
  SpinLock lock;
  int users = 0;  // uses by QPs; a QP with one CQ for both queues counts 2
};

// Work requests are counted modulo 2^32. As on a device, a slot is free again when a completion at or behind it in the
// queue has been polled.
struct NullQueue {
  std::uint32_t depth = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t posted = 0;
  std::uint32_t freed = 0;
  bool full() const { return posted - freed >= depth; }
};

// A post by ibv_wr_* in progress. `qp_base` is a copy; posts through it would not reach the QP.
struct NullBuilder : ibv_qp_ex {
  NullBuilder() : ibv_qp_ex{} {}
  NullQp* qp = nullptr;
  int error = 0;
  std::uint32_t requests = 0;
  std::uint32_t completions = 0;       // completions of the signaled requests
  std::vector<NullCompletion> staged;  // their positions are counted from the start of the post
};

// A RECV that waits for null_deliver().
struct HeldRecv {
  std::uint64_t wr_id = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t position = 0;  // as NullCompletion::position
};

struct NullQp : ibv_qp {
  Transport transport = Transport::rc;
  NullQueue send_queue;
  NullQueue recv_queue;
  std::uint32_t max_inline = 0;
  bool signal_all = false;
  NullRing<HeldRecv> held;               // has room after null_hold_recvs()
  std::unique_ptr<NullBuilder> builder;  // only if the QP was created with ibv_wr_*
};

// The ibv_wr_* interface of `qp` for these operations (IBV_QP_EX_WITH_*), which its transport must support.
std::unique_ptr<NullBuilder> make_null_builder(NullQp& qp, std::uint64_t operations);

int null_post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad);
int null_post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad);
int null_poll_cq(ibv_cq* cq, int entries, ibv_wc* completions);
int null_req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace verbscope
