// The contents of a traced process's mapped file: a header, then records, which are never removed. A killed process
// loses no counts. Only programs of the same build can read it: layout and pointers are those of the process that wrote
// it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drivers_patch/cost.hpp"
#include "drivers_patch/queue_memory/decode.hpp"
#include "drivers_patch/queue_memory/send_queue.hpp"

namespace verbscope::driver {

inline constexpr std::uint64_t kMagic = 0x3145434152545356;  // "VSTRACE1"

struct TraceHeader {
  std::uint64_t magic = 0;                 // set last
  std::atomic<std::uint64_t> capacity{0};  // bytes; lowered if the file system is full
  std::atomic<std::uint64_t> used{0};      // bytes, including the header
  std::uint64_t layout = 0;                // kLayout of the build that wrote it
  WireFacts wire;
  int process = 0;
  int parent = 0;
  std::uint64_t began_ns = 0;                  // CLOCK_MONOTONIC
  std::uint64_t began_ticks = 0;               // time stamp counter at the same moment
  std::atomic<std::uint64_t> without_room{0};  // objects without counts of their own, which share others
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

// The head of each record. `bytes` is stored before the record is filled, so that readers find the next record.
struct RecordHead {
  std::atomic<RecordKind> kind;  // set last
  std::uint32_t bytes;

  RecordHead() {}  // NOLINT: Arena fills it
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
  // Written under process.control.
  std::uint64_t registrations = 0, deregistrations = 0, registered_bytes = 0, registered_pages = 0;
  std::uint64_t qps_made = 0, qps_gone = 0, cqs_made = 0, modifications = 0, address_handles = 0;
  // Registrations while queues of the context were in use.
  std::uint64_t late_registrations = 0, late_pages = 0;
};

struct QpCounts;

// A QP. The record stays until the file is removed; `alive` becomes false when the QP is destroyed.
struct QpRecord {
  static constexpr RecordKind kKind = RecordKind::queue_pair;
  RecordHead head;
  std::uint32_t number = 0;  // over all contexts, from 0
  std::uint32_t context = 0;
  std::uint32_t qp_num = 0;
  bool alive = true;
  QpFacts facts;
  const void* object = nullptr;    // ibv_qp
  const void* extended = nullptr;  // ibv_qp_ex of the builder; often the same address
  struct BuilderCalls* builder_calls = nullptr;
  std::atomic<struct CheckedQueue*> checked{nullptr};  // with --verify, from the first post on
  std::atomic<QpCounts*> counts{nullptr};              // the latest; a list linked by QpCounts::next
  // The sampled request: its completion is the `sample_target`-th polled completion of a send.
  std::atomic<std::uint64_t> sample_target{0};  // 0: none
  std::uint64_t sample_ticks = 0;
  std::atomic<std::uint32_t> posters{0};  // threads
  std::atomic<std::uint32_t> pollers{0};
  std::atomic<bool> no_samples{false};  // completions cannot be attributed: several threads, errors, a reset
};

// Requests of one shape. `head`: elements, opcode, flags and posted alone. `data`: length and offset.
struct ShapeSlot {
  std::uint64_t head = 0;
  std::uint64_t data = 0;
  std::uint64_t count = 0;
};

// A shape of requests with one element. `count` points to its count.
struct RecentShape {
  std::uint64_t head = ~std::uint64_t{0};  // no shape has this value
  std::uint64_t data = 0;
  std::uint64_t* count = nullptr;
};

struct ReceiveSlot {
  std::uint64_t shape = 0;  // length, or kWithoutMemory
  std::uint64_t count = 0;
};

// The most frequent addresses of atomics: the low bits of a sample of remote addresses.
struct AtomicAddresses {
  static constexpr std::uint64_t kLowBits = 0xfff;  // that an adapter distinguishes (ATC 2016, section 5.4)
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

// The counts of one thread for one QP. Only that thread writes it.
struct QpCounts {
  static constexpr RecordKind kKind = RecordKind::qp_counts;
  static constexpr std::size_t kShapes = 16;
  static constexpr std::size_t kReceived = 8;
  RecordHead head;
  // Read by single posts: the two shapes last posted alone, the more frequent one first.
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
  RecentShape recent[2];
  std::uint64_t offset_mask = 63;
  RecentShape in_lists[2];        // likewise, for requests in lists
  std::int64_t until_sample = 0;  // requests until the next sample, without singles of recent shapes
  bool takes_times = true;
  bool sample_due = false;  // the next signaled request will be sampled
  // Read by polls.
  std::uint64_t send_completions = 0;
  std::uint64_t last_received = ~std::uint64_t{0};
  std::uint64_t* last_received_count = nullptr;

  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) = nullptr;
  const void* object = nullptr;  // ibv_qp; null if it was destroyed, and in counts that QPs share
  QpRecord* qp = nullptr;
  QpCounts* next = nullptr;  // list of the QP's counts
  std::uint32_t qp_record = 0;
  std::uint32_t thread = 0;
  bool posts = false;  // this thread has posted sends
  ShapeSlot shapes[kShapes];
  SendTotals spilled;  // requests whose shapes found no slot
  ReceiveSlot received[kReceived];
  ReceiveTotals received_spilled;
  std::uint64_t lists = 0;  // posts of two or more
  std::uint64_t turns = 0;  // times that the thread switched to this QP from another
  std::uint64_t failed_posts = 0;
  std::uint64_t by_list[kListClasses] = {};
  Recvs recvs;
  std::uint64_t by_status[kStatuses] = {};  // failed completions
  std::uint64_t samples = 0;
  std::uint64_t by_time[kTimeClasses] = {};
  AtomicAddresses atomics;
  std::uint64_t reads_outstanding = 0;  // maximum of outstanding READs and atomics in samples
};

// The provider's calls of a QP's builder; null where it implements none.
struct BuilderCalls {
  static constexpr RecordKind kKind = RecordKind::builder_calls;
  RecordHead head;
  QpRecord* qp = nullptr;
  struct CheckedBuilder* checked = nullptr;  // with --verify
  ibv_qp_ex calls{};
};

// The requests that one thread builds between wr_start and wr_complete.
struct BuilderBatch {
  static constexpr RecordKind kKind = RecordKind::builder_batch;
  static constexpr std::size_t kShapes = 16;
  RecordHead head;
  const BuilderCalls* calls = nullptr;
  QpCounts* counts = nullptr;
  std::uint64_t requests = 0;   // without the last one
  bool open = false;            // the last one is not added yet
  bool spills = false;          // a request had no shape, or its shape found no slot
  ShapeSlot last;               // its count stays 0
  ShapeSlot* recent = nullptr;  // slot of the previous request
  std::size_t used = 0;
  ShapeSlot shapes[kShapes];
  SendTotals spilled;        // if the batch is a list
  SendTotals spilled_alone;  // the first request, if it stays the only one
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

// The provider's calls of an extended completion queue.
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
  PollCalls calls;               // if it is an extended queue
};

// The counts of one thread for one completion queue.
struct PollCounts {
  static constexpr RecordKind kKind = RecordKind::poll_counts;
  RecordHead head;
  int (*poll)(ibv_cq*, int, ibv_wc*) = nullptr;
  std::uint64_t empty = 0;
  std::uint64_t in_passing = 0;  // those of `empty` with other work since the last poll: the thread did not wait
  std::uint64_t polls = 0;       // that returned completions
  std::uint64_t completions = 0;
  std::uint64_t failed = 0;  // polls that returned an error
  std::uint64_t arms = 0;
  std::uint64_t by_batch[kListClasses] = {};
  int (*arm)(ibv_cq*, int) = nullptr;
  std::uint64_t batch = 0;       // completions of the current poll of an extended queue
  std::uint64_t number_tag = 0;  // prefix of the lookup keys of QP numbers
  QpCounts* unknown = nullptr;   // for completions of unknown QPs
  std::uint32_t cq_record = 0;
  std::uint32_t thread = 0;
};

// Differences between a WQE and its request, besides refusals to decode it.
enum class Difference : std::uint8_t { opcode, size, signaled, fence, solicited, inline_bytes, position };
// A difference is numbered by Difference, or after those by Refusal.
inline constexpr std::size_t kPlainDifferences = enum_count<Difference>();
inline constexpr std::size_t kDifferences = kPlainDifferences + enum_count<Refusal>();

// The first WQE with a difference, and its request.
struct DifferenceExample {
  std::uint64_t qp_num = 0;
  std::uint64_t position = 0;  // as the driver counts positions
  std::uint64_t opcode = 0;
  std::uint64_t elements = 0;
  std::uint64_t length = 0;  // payload bytes
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
};

struct DifferenceSlot {
  std::uint64_t count = 0;
  std::uint64_t claimed = 0;  // by the thread that stores the example
  std::uint64_t filled = 0;   // set last
  DifferenceExample example;
};

enum class QueueMemory : std::uint32_t { readable, other_adapter, no_direct_verbs };

// With --verify: results for the WQEs of one context. All its threads add to it.
struct ContextChecks {
  static constexpr RecordKind kKind = RecordKind::context_checks;
  RecordHead head;
  std::uint32_t context = 0;
  QueueMemory memory = QueueMemory::readable;
  std::uint64_t wqes = 0;            // compared
  std::uint64_t left_out = 0;        // not compared: QPs or requests of other types, or overlapping posts
  std::uint64_t without_memory = 0;  // QPs whose memory the provider did not return
  std::uint64_t first_error = 0;     // errno of the first of them
  DifferenceSlot differences[kDifferences];
};

// The send queue of a QP and the state of its checks.
struct CheckedQueue {
  static constexpr RecordKind kKind = RecordKind::checked_queue;
  RecordHead head;
  SendQueue queue;  // without memory if it cannot be read
  QpRecord* qp = nullptr;
  ContextChecks* checks = nullptr;
  std::atomic<std::uint32_t> guess{0};  // of the driver's position
  // Numbers of posts that began and that ended. A post that overlaps no other finds only its own WQEs.
  std::atomic<std::uint32_t> begun{0};
  std::atomic<std::uint32_t> ended{0};
};

// The variables that a traced program needs in its environment, besides LD_PRELOAD, and how its file's name ends.
inline constexpr const char* kFolderVariable = "VERBSCOPE_TRACE_DIR";
inline constexpr const char* kNicVariable = "VERBSCOPE_TRACE_NIC";
inline constexpr const char* kVerifyVariable = "VERBSCOPE_TRACE_VERIFY";  // set: --verify
inline constexpr const char* kExtension = ".trace";

inline constexpr std::uint64_t kLayout = sizeof(TraceHeader) + sizeof(ThreadRecord) * 3 + sizeof(ContextRecord) * 5 +
                                         sizeof(QpRecord) * 7 + sizeof(QpCounts) * 11 + sizeof(SrqRecord) * 13 +
                                         sizeof(RecvCounts) * 17 + sizeof(CqRecord) * 19 + sizeof(PollCounts) * 23 +
                                         sizeof(ContextChecks) * 29;

}  // namespace verbscope::driver
