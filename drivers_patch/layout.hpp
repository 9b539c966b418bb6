// What lies in the mapped file of a traced process: a header, then records one after another, which are never taken
// away. A process that is killed leaves every count that it made. All of it is for programs of the same build: pointers
// and layout are those of the process that wrote it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drivers_patch/cost.hpp"
#include "drivers_patch/queue_memory/send_queue.hpp"
#include "drivers_patch/queue_memory/wqe.hpp"
#include "drivers_patch/totals.hpp"

namespace verbscope::driver {

inline constexpr std::uint64_t kMagic = 0x3145434152545356;  // "VSTRACE1"

struct TraceHeader {
  std::uint64_t magic = 0;                 // set last
  std::atomic<std::uint64_t> capacity{0};  // bytes; fewer when the file system turns out to be full
  std::atomic<std::uint64_t> used{0};      // bytes, the header's too
  std::uint64_t layout = 0;                // the size of all records: of another build when it differs
  WireFacts wire;
  int process = 0;
  int parent = 0;
  std::uint64_t began_ns = 0;                  // CLOCK_MONOTONIC
  std::uint64_t began_ticks = 0;               // time stamp counter at the same moment
  std::atomic<std::uint64_t> without_room{0};  // objects whose counts had no room and went to one that they share
  char program[64] = {};
};

enum class RecordKind : std::uint32_t {
  none,
  thread,
  context,
  queue_pair,
  shared_queue,
  completion_queue,
  qp_counts,
  recv_counts,
  poll_counts,
  builder_calls,
  builder_batch,
  context_checks,
  checked_queue,
  checked_builder,
};

// What a record begins with. Its length is there before it is filled, so that a reader finds the next one.
struct RecordHead {
  std::atomic<RecordKind> kind;  // set last
  std::uint32_t bytes;

  RecordHead() {}  // NOLINT: Arena has filled it
};

struct ThreadRecord {
  static constexpr RecordKind kKind = RecordKind::thread;
  RecordHead head;
  std::uint32_t number = 0;  // from 1
  int tid = 0;
};

struct ContextRecord {
  static constexpr RecordKind kKind = RecordKind::context;
  RecordHead head;
  std::uint32_t number = 0;  // from 0
  NicFamily family = NicFamily::mlx5;
  bool family_known = false;
  char device[64] = {};
  // The control path, under its mutex.
  std::uint64_t registrations = 0, deregistrations = 0, registered_bytes = 0, registered_pages = 0;
  std::uint64_t qps_made = 0, qps_gone = 0, cqs_made = 0, modifications = 0, address_handles = 0;
  // Of the registrations those that came when queues of the context were in use already.
  std::uint64_t late_registrations = 0, late_pages = 0;
};

struct QpCounts;

// A QP, as long as the file lives; `alive` until it is destroyed.
struct QpRecord {
  static constexpr RecordKind kKind = RecordKind::queue_pair;
  RecordHead head;
  std::uint32_t number = 0;  // of the record, from 0 over all contexts
  std::uint32_t context = 0;
  std::uint32_t qp_num = 0;
  bool alive = true;
  QpFacts facts;
  const void* object = nullptr;    // ibv_qp
  const void* extended = nullptr;  // ibv_qp_ex of the builder; often the same address
  struct BuilderCalls* builder_calls = nullptr;
  std::atomic<struct CheckedQueue*> checked{nullptr};  // with --verify, from the first post on
  std::atomic<QpCounts*> counts{nullptr};              // the latest; each names the next
  // The request whose time is taken: its completion is the `sample_target`-th of sends that is polled.
  std::atomic<std::uint64_t> sample_target{0};  // 0: none
  std::uint64_t sample_ticks = 0;
  std::atomic<std::uint32_t> posters{0};  // threads
  std::atomic<std::uint32_t> pollers{0};
  std::atomic<bool> no_samples{false};  // completions cannot be told apart: several threads, errors, a reset
};

// Requests that are alike: `head` has elements, opcode, flags and whether it was posted alone, `data` length and
// offset.
struct ShapeSlot {
  std::uint64_t head = 0;
  std::uint64_t data = 0;
  std::uint64_t count = 0;
};

// A shape of requests with one element, and its count.
struct RecentShape {
  std::uint64_t head = ~std::uint64_t{0};  // none has this
  std::uint64_t data = 0;
  std::uint64_t* count = nullptr;
};

struct ReceiveSlot {
  std::uint64_t shape = 0;  // length, and what kind of RECV it was
  std::uint64_t count = 0;
};

// Where atomics worked: the low bits of their remote addresses, of some of them.
struct AtomicAddresses {
  static constexpr std::uint64_t kLowBits = 0xfff;  // by which an adapter tells them apart (ATC 2016, section 5.4)
  struct Frequent {
    std::uint64_t low = 0;
    std::uint64_t count = 0;  // too low by at most a fifth of `noted`
  };
  std::uint64_t noted = 0;
  Frequent frequent[4];
};

struct Recvs {
  std::uint64_t recvs = 0, posts = 0, failed_posts = 0, elements = 0;
  std::uint64_t by_list[kListClasses] = {};
};

// What one thread did with one QP. Written by that thread alone.
struct QpCounts {
  static constexpr RecordKind kKind = RecordKind::qp_counts;
  static constexpr std::size_t kShapes = 16;
  static constexpr std::size_t kReceived = 8;
  RecordHead head;
  // What a single post looks at: the two shapes that were posted alone last, the more frequent one first.
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
  RecentShape recent[2];
  std::uint64_t offset_mask = 63;
  RecentShape in_lists[2];        // likewise of requests in lists
  std::int64_t until_sample = 0;  // requests in lists
  bool takes_times = true;
  bool sample_due = false;  // the next signaled request has its time taken
  // What a poll looks at.
  std::uint64_t send_completions = 0;
  std::uint64_t last_received = ~std::uint64_t{0};
  std::uint64_t* last_received_count = nullptr;

  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) = nullptr;
  const void* object = nullptr;  // ibv_qp; null when it is no more, and in counts that QPs share
  QpRecord* qp = nullptr;
  QpCounts* next = nullptr;  // of the same QP
  std::uint32_t qp_record = 0;
  std::uint32_t thread = 0;
  bool posts = false;  // this thread has posted sends
  ShapeSlot shapes[kShapes];
  SendTotals spilled;  // requests whose shapes had no slot
  ReceiveSlot received[kReceived];
  ReceiveTotals received_spilled;
  std::uint64_t lists = 0;  // posts of two and more
  std::uint64_t turns = 0;  // times that the thread came to this QP from another
  std::uint64_t failed_posts = 0;
  std::uint64_t by_list[kListClasses] = {};
  Recvs recvs;
  std::uint64_t by_status[kStatuses] = {};  // completions that are no success
  std::uint64_t samples = 0;
  std::uint64_t by_time[kTimeClasses] = {};
  AtomicAddresses atomics;
  std::uint64_t reads_outstanding = 0;  // most READs and atomics under way that samples saw
};

// The calls of a QP's builder that its provider put there; those that it left out stay out.
struct BuilderCalls {
  static constexpr RecordKind kKind = RecordKind::builder_calls;
  RecordHead head;
  QpRecord* qp = nullptr;
  struct CheckedBuilder* checked = nullptr;  // with --verify
  ibv_qp_ex calls{};
};

// The requests that one thread is building, between wr_start and wr_complete.
struct BuilderBatch {
  static constexpr RecordKind kKind = RecordKind::builder_batch;
  static constexpr std::size_t kShapes = 16;
  RecordHead head;
  const BuilderCalls* calls = nullptr;
  QpCounts* counts = nullptr;
  std::uint64_t requests = 0;   // but for the last one
  bool open = false;            // the last one is not added yet
  bool spills = false;          // one has no shape, or there was no room for its shape
  ShapeSlot last;               // its count stays 0
  ShapeSlot* recent = nullptr;  // of the request before it
  std::size_t used = 0;
  ShapeSlot shapes[kShapes];
  SendTotals spilled;        // posted in a list
  SendTotals spilled_alone;  // the first one, if it stays alone
};

struct SrqRecord {
  static constexpr RecordKind kKind = RecordKind::shared_queue;
  RecordHead head;
  std::uint32_t number = 0;
  std::uint32_t context = 0;
  std::uint32_t max_sge = 1;
  const void* object = nullptr;  // ibv_srq
};

struct RecvCounts {
  static constexpr RecordKind kKind = RecordKind::recv_counts;
  RecordHead head;
  std::uint32_t srq_record = 0;
  std::uint32_t thread = 0;
  int (*post)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) = nullptr;
  Recvs recvs;
};

// The calls of an extended completion queue that its provider put there.
struct PollCalls {
  int (*start)(ibv_cq_ex*, ibv_poll_cq_attr*) = nullptr;
  int (*next)(ibv_cq_ex*) = nullptr;
  void (*end)(ibv_cq_ex*) = nullptr;
};

struct CqRecord {
  static constexpr RecordKind kKind = RecordKind::completion_queue;
  RecordHead head;
  std::uint32_t number = 0;
  std::uint32_t context = 0;
  const void* object = nullptr;  // ibv_cq or ibv_cq_ex
  PollCalls calls;               // of an extended queue
};

// What one thread did with one completion queue.
struct PollCounts {
  static constexpr RecordKind kKind = RecordKind::poll_counts;
  RecordHead head;
  int (*poll)(ibv_cq*, int, ibv_wc*) = nullptr;
  std::uint64_t empty = 0;
  std::uint64_t in_passing = 0;  // of these the ones between which the thread did something else: it did not wait
  std::uint64_t polls = 0;       // that yielded some
  std::uint64_t completions = 0;
  std::uint64_t failed = 0;  // polls that yielded an error
  std::uint64_t arms = 0;
  std::uint64_t by_batch[kListClasses] = {};
  int (*arm)(ibv_cq*, int) = nullptr;
  std::uint64_t batch = 0;       // completions of the poll that goes on, of an extended queue
  std::uint64_t number_tag = 0;  // what makes a QP's number a key
  QpCounts* unknown = nullptr;   // for completions of QPs that are not known
  std::uint32_t cq_record = 0;
  std::uint32_t thread = 0;
};

// In what a WQE, as the driver wrote it, differs from what was reckoned of its request: of these, or it is refused.
enum class Difference : std::uint8_t { opcode, size, signaled, fence, solicited, inline_bytes, position };
// A kind of difference is one of Difference, or behind those one of Refusal.
inline constexpr std::size_t kPlainDifferences = enum_count<Difference>();
inline constexpr std::size_t kDifferences = kPlainDifferences + enum_count<Refusal>();

// The first WQE of a kind of difference, and its request.
struct DifferenceExample {
  std::uint64_t qp_num = 0;
  std::uint64_t position = 0;  // as the driver counts
  std::uint64_t opcode = 0;
  std::uint64_t elements = 0;
  std::uint64_t length = 0;  // of the payload, in bytes
  std::uint64_t reckoned = 0;
  std::uint64_t found = 0;
};

struct DifferenceSlot {
  std::uint64_t count = 0;
  std::uint64_t claimed = 0;  // by the thread that fills the example
  std::uint64_t filled = 0;   // set last
  DifferenceExample example;
};

enum class QueueMemory : std::uint32_t { there, other_adapter, no_direct_verbs };

// With --verify: what its WQEs were found to be, of one context. All of its threads add to it.
struct ContextChecks {
  static constexpr RecordKind kKind = RecordKind::context_checks;
  RecordHead head;
  std::uint32_t context = 0;
  QueueMemory memory = QueueMemory::there;
  std::uint64_t wqes = 0;            // that were compared
  std::uint64_t left_out = 0;        // that were not, as their QPs or requests are of another kind, or threads met
  std::uint64_t without_memory = 0;  // QPs whose memory the provider did not tell of
  std::uint64_t first_error = 0;     // errno of the first of them
  DifferenceSlot differences[kDifferences];
};

inline constexpr std::uint64_t kLayout = sizeof(TraceHeader) + sizeof(ThreadRecord) * 3 + sizeof(ContextRecord) * 5 +
                                         sizeof(QpRecord) * 7 + sizeof(QpCounts) * 11 + sizeof(SrqRecord) * 13 +
                                         sizeof(RecvCounts) * 17 + sizeof(CqRecord) * 19 + sizeof(PollCounts) * 23 +
                                         sizeof(ContextChecks) * 29;

}  // namespace verbscope::driver
