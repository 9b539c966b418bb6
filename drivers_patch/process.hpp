// What is counted in this process, and where its counts are found. One for each process, since the calls that are
// wrapped have no argument for it. It is never taken down: programs post and poll until they are no more.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "drivers_patch/arena.hpp"
#include "drivers_patch/lookup.hpp"
#include "drivers_patch/queue_memory/direct_verbs.hpp"
#include "wire/doorbell_registers.hpp"

namespace verbscope::driver {

// A context whose calls are wrapped: the calls that its provider put there, and counts for objects that have no room
// for counts of their own.
struct WrappedContext {
  ContextRecord* record = nullptr;
  ibv_context_ops ops{};
  decltype(verbs_context::create_qp_ex) create_qp_ex = nullptr;
  decltype(verbs_context::create_cq_ex) create_cq_ex = nullptr;
  decltype(verbs_context::create_srq_ex) create_srq_ex = nullptr;
  bool sample_times = true;
  DoorbellRegisters registers;
  std::atomic<bool> in_use{false};  // something was posted or polled
  // What the counted post goes on to: the provider's, or what looks at the WQEs that the provider's wrote.
  decltype(ibv_context_ops::post_send) post_send = nullptr;
  ContextChecks* checks = nullptr;  // with --verify
  DirectVerbs direct;
  QpCounts* other_qps = nullptr;
  PollCounts* other_cqs = nullptr;
  RecvCounts* other_srqs = nullptr;
};

struct Process {
  Arena arena;
  Lookup lookup;
  std::mutex control;  // held by the control path, and where an object is first seen that nobody told of
  std::atomic<std::uint32_t> threads{0};
  std::uint32_t contexts = 0, qps = 0, srqs = 0, cqs = 0;
  // Asks the provider about a QP that was not made through this library; null: nobody can.
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) = nullptr;
  // With --verify, which is asked for before any context is attached: finds the functions that tell of queue memory.
  DirectVerbs (*find_direct)() = nullptr;
};
extern Process process;

// The bits of a thread in the keys of what it counts: 16 at the top. 0: it has not counted yet.
extern constinit thread_local std::uint64_t thread_bits __attribute__((tls_model("initial-exec")));

// The QP that this thread posted to last. Where the QP is no more, and another has its address, its counts know no
// recent shapes: whoever takes it for the other's finds nothing alike, and looks it up.
struct RecentQp {
  const ibv_qp* qp;
  QpCounts* counts;
};
extern constinit thread_local RecentQp recent_qp __attribute__((tls_model("initial-exec")));

// The poll that this thread found empty last, with what it had posted by then; no queue: its last poll was another.
struct RecentEmpty {
  const void* cq;  // ibv_cq or ibv_cq_ex
  std::uint64_t posted;
  bool again;  // the one before it was the same
};
extern constinit thread_local RecentEmpty recent_empty __attribute__((tls_model("initial-exec")));

// The bits that stand in the place of a thread's in the keys of records and contexts.
inline constexpr std::uint64_t kRecordBits = std::uint64_t{0xffff} << 48;
inline constexpr std::uint32_t kMostThreads = 0xfffe;
// Set in the keys of what builders do: an ibv_qp_ex often has the address of its ibv_qp.
inline constexpr std::uint64_t kBuilderBit = 1;

inline std::uint64_t key_of(const void* object) {
  return reinterpret_cast<std::uint64_t>(object);
}
// Completions tell of a QP by its number in its context; addresses have this bit clear.
inline std::uint64_t number_tag(std::uint32_t context) {
  return std::uint64_t{1} << 47 | std::uint64_t{context & 0x7fffff} << 24;
}

// Writes what others may read meanwhile.
inline void put(std::uint64_t& count, std::uint64_t value) {
  __atomic_store_n(&count, value, __ATOMIC_RELAXED);
}
template <class Totals>
void put_all(Totals& counts, const Totals& values) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(&values);
  auto* const to = reinterpret_cast<std::uint64_t*>(&counts);
  for (std::size_t i = 0; i < sizeof values / sizeof *from; ++i) put(to[i], from[i]);
}

// Adds to a count that this thread alone writes and others may read meanwhile.
inline void add(std::uint64_t& count, std::uint64_t n = 1) {
  put(count, __atomic_load_n(&count, __ATOMIC_RELAXED) + n);
}

template <class Record>
Record* find_record(const void* object) {
  return static_cast<Record*>(process.lookup.find(kRecordBits | key_of(object)));
}
// The wrapped context at this address; null: it is not wrapped.
inline WrappedContext* wrapped(const ibv_context* context) {
  return static_cast<WrappedContext*>(process.lookup.find(kRecordBits | key_of(context)));
}

// The counts of this thread for an object of a wrapped context, made when they are not there yet.
QpCounts& make_qp_counts(ibv_qp* qp);
PollCounts& make_poll_counts(ibv_cq* cq);
RecvCounts& make_recv_counts(ibv_srq* srq);
// Of a QP that a completion names, or `other`.
QpCounts& make_numbered_counts(std::uint64_t number_key, QpCounts& other);

inline QpCounts& qp_counts(ibv_qp* qp) {
  void* const found = process.lookup.find(thread_bits | key_of(qp));
  return found != nullptr ? *static_cast<QpCounts*>(found) : make_qp_counts(qp);
}
inline PollCounts& poll_counts(ibv_cq* cq) {
  void* const found = process.lookup.find(thread_bits | key_of(cq));
  return found != nullptr ? *static_cast<PollCounts*>(found) : make_poll_counts(cq);
}
inline RecvCounts& recv_counts(ibv_srq* srq) {
  void* const found = process.lookup.find(thread_bits | key_of(srq));
  return found != nullptr ? *static_cast<RecvCounts*>(found) : make_recv_counts(srq);
}
inline QpCounts& numbered_counts(std::uint64_t number_key, QpCounts& other) {
  void* const found = process.lookup.find(thread_bits | number_key);
  return found != nullptr ? *static_cast<QpCounts*>(found) : make_numbered_counts(number_key, other);
}

// Gives this thread its bits; false when there are too many threads.
bool know_thread();

// For programs whose threads are no threads of the system (fibers of a simulated machine): the number of a new thread,
// 0 when there are too many; and what is counted from now on is of the thread with this number.
std::uint32_t add_thread();
void be_thread(std::uint32_t number);

// Keeps errno as it was.
class ErrnoKept {
 public:
  ErrnoKept();
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;
  ~ErrnoKept();

 private:
  int value_;
};

}  // namespace verbscope::driver
