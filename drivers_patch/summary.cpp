#include "drivers_patch/summary.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>

#include "common/error.hpp"
#include "common/fd.hpp"
#include "drivers_patch/arena.hpp"
#include "drivers_patch/process.hpp"
#include "drivers_patch/request_counts.hpp"

namespace verbscope::driver {
namespace {

// A file mapped for reading.
class Mapping {
 public:
  Mapping(const std::string& path, std::size_t bytes) : bytes_(bytes) {
    const Fd file(check(fmt::format("open {}", path), open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    memory_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory_ == MAP_FAILED) throw_errno(fmt::format("mmap {}", path), errno);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(memory_, bytes_); }

  const TraceHeader& header() const { return *static_cast<const TraceHeader*>(memory_); }

 private:
  void* memory_;
  std::size_t bytes_;
};

// True if the file is complete enough to be read: its magic number is written last.
bool is_ready(const std::filesystem::path& path) {
  std::uint64_t mark = 0;
  std::ifstream file(path, std::ios::binary);
  return file.read(reinterpret_cast<char*>(&mark), sizeof mark) && mark == kMagic;
}

// Copies counts that another thread may be changing.
template <class T>
T snapshot(const T& counts) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0);
  T copy;
  const auto* const from = reinterpret_cast<const std::uint64_t*>(&counts);
  auto* const to = reinterpret_cast<std::uint64_t*>(&copy);
  for (std::size_t i = 0; i < sizeof(T) / sizeof *to; ++i) to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
  return copy;
}

template <std::size_t size>
void add_snapshot(std::uint64_t (&into)[size], const std::uint64_t (&counts)[size]) {
  for (std::size_t i = 0; i < size; ++i) into[i] += snapshot(counts[i]);
}

template <class T>
void add(T& into, const T& counts) {
  add_scaled(into, counts, 1);
}

// Adds requests and completions that were counted by shape, and their cost.
void add_shapes(const WireFacts& wire, const QpFacts& facts, const QpCounts& counts, Sums& sums) {
  sums.sends = snapshot(counts.spilled);
  for (const ShapeSlot& slot : counts.shapes) {
    const ShapeSlot one = snapshot(slot);
    if (one.count > 0) add_request(wire, facts, request_of({one.head, one.data}), one.count, sums.sends);
  }
  sums.received = snapshot(counts.received_spilled);
  for (const ReceiveSlot& slot : counts.received) {
    const ReceiveSlot one = snapshot(slot);
    if (one.count == 0) continue;
    add_received(wire, facts, one.shape & 0xffffffff, (one.shape & kWithoutMemory) == 0, one.count, sums.received);
  }
}

Sums sums_of(const WireFacts& wire, const QpFacts& facts, const QpCounts& counts) {
  Sums sums;
  add_shapes(wire, facts, counts, sums);
  sums.lists = snapshot(counts.lists);
  sums.failed_posts = snapshot(counts.failed_posts);
  sums.send_completions = snapshot(counts.send_completions);
  sums.samples = snapshot(counts.samples);
  sums.recvs = snapshot(counts.recvs);
  add_snapshot(sums.by_list, counts.by_list);
  add_snapshot(sums.by_status, counts.by_status);
  add_snapshot(sums.by_time, counts.by_time);
  add(sums.pcie, sums.sends.pcie);
  add(sums.pcie, sums.received.pcie);
  add_doorbells(wire, sums.doorbells(), sums.sends.doorbell_blocks, sums.pcie);
  add_cqes(wire, sums.send_completions + sums.received.completions + sums.errors(), sums.pcie);
  add_recvs(wire, recv_stride_of(facts), sums.recvs.recvs, sums.received.completions, sums.pcie);
  return sums;
}

Sums sums_of(const WireFacts& wire, const PollCounts& counts) {
  Sums sums;
  sums.empty_polls = snapshot(counts.empty);
  sums.polls = snapshot(counts.polls);
  sums.polled = snapshot(counts.completions);
  sums.failed_polls = snapshot(counts.failed);
  sums.arms = snapshot(counts.arms);
  add_snapshot(sums.by_batch, counts.by_batch);
  add_armings(wire, sums.arms, sums.pcie);
  return sums;
}

Sums sums_of(const WireFacts& wire, const RecvCounts& counts, std::uint32_t max_sge) {
  Sums sums;
  sums.recvs = snapshot(counts.recvs);
  add_recvs(wire, shared_recv_stride(max_sge), sums.recvs.recvs, 0, sums.pcie);
  return sums;
}

// Reads the records and adds each to the rows that it refers to by number.
class Reader {
 public:
  explicit Reader(Summary& summary) : summary_(summary) {}

  void read(const RecordHead& head) {
    switch (head.kind.load(std::memory_order_acquire)) {
      case RecordKind::thread:
        return read(reinterpret_cast<const ThreadRecord&>(head));
      case RecordKind::context:
        return read(reinterpret_cast<const ContextRecord&>(head));
      case RecordKind::queue_pair:
        return read(reinterpret_cast<const QpRecord&>(head));
      case RecordKind::shared_queue:
        return read(reinterpret_cast<const SrqRecord&>(head));
      case RecordKind::completion_queue:
        return read(reinterpret_cast<const CqRecord&>(head));
      case RecordKind::qp_counts:
        return read(reinterpret_cast<const QpCounts&>(head));
      case RecordKind::poll_counts:
        return read(reinterpret_cast<const PollCounts&>(head));
      case RecordKind::recv_counts:
        return read(reinterpret_cast<const RecvCounts&>(head));
      case RecordKind::context_checks:
        return read(reinterpret_cast<const ContextChecks&>(head));
      default:
        return;
    }
  }

 private:
  void read(const ThreadRecord& thread) {
    threads_[thread.number] = summary_.threads.size();
    summary_.threads.push_back({thread.number, thread.tid, {}});
  }

  void read(const ContextRecord& from) {
    contexts_[from.number] = summary_.contexts.size();
    summary_.contexts.push_back({from.number, from.device, from.family_known, from.family, snapshot(from.registrations),
                                 snapshot(from.deregistrations), snapshot(from.registered_bytes),
                                 snapshot(from.registered_pages), snapshot(from.qps_made), snapshot(from.qps_gone),
                                 snapshot(from.cqs_made), snapshot(from.modifications), snapshot(from.address_handles),
                                 snapshot(from.late_registrations), snapshot(from.late_pages)});
  }

  void read(const QpRecord& qp) {
    qps_[qp.number] = summary_.qps.size();
    summary_.qps.push_back({.context = qp.context,
                            .qp_num = qp.qp_num,
                            .alive = qp.alive,
                            .unknown = qp.object == nullptr,
                            .builder = qp.builder_calls != nullptr,
                            .facts = qp.facts,
                            .threads = {},
                            .sums = {}});
  }

  void read(const SrqRecord& srq) {
    shared_sges_[srq.number] = srq.max_sge;
    srq_contexts_[srq.number] = srq.context;
  }

  void read(const CqRecord& cq) { cq_contexts_[cq.number] = cq.context; }

  void read(const QpCounts& counts) {
    const auto found = qps_.find(counts.qp_record);
    if (found == qps_.end()) return;
    QpSummary& qp = summary_.qps[found->second];
    const Sums sums = sums_of(summary_.wire, qp.facts, counts);
    add(qp.sums, sums);
    note_use(counts, static_cast<std::uint32_t>(found->second), sums);
    if (counts.thread != 0) qp.threads.push_back(counts.thread);
    add_to_thread(counts.thread, sums);
    add_to_context(qp.context, sums);
  }

  void note_use(const QpCounts& counts, std::uint32_t qp, const Sums& sums) {
    QueueUse use{.qp = qp,
                 .thread = counts.thread,
                 .requests = {},
                 .lists = sums.lists,
                 .turns = snapshot(counts.turns),
                 .send_completions = sums.send_completions,
                 .recvs = sums.recvs.recvs,
                 .recv_posts = sums.recvs.posts,
                 .received = sums.received.completions,
                 .received_bytes = sums.received.payload_bytes,
                 .reads_outstanding = snapshot(counts.reads_outstanding),
                 .atomics = snapshot(counts.atomics)};
    for (const ShapeSlot& slot : counts.shapes) {
      const ShapeSlot one = snapshot(slot);
      if (one.count > 0) use.requests.push_back({request_of({one.head, one.data}), one.count});
    }
    summary_.uses.push_back(std::move(use));
  }

  void read(const PollCounts& counts) {
    const Sums sums = sums_of(summary_.wire, counts);
    add_to_thread(counts.thread, sums);
    summary_.poll_uses.push_back(
        {counts.thread, sums.polls, sums.empty_polls, snapshot(counts.in_passing), sums.polled});
    if (const auto found = cq_contexts_.find(counts.cq_record); found != cq_contexts_.end()) {
      add_to_context(found->second, sums);
    }
  }

  void read(const RecvCounts& counts) {
    const auto sges = shared_sges_.find(counts.srq_record);
    const Sums sums = sums_of(summary_.wire, counts, sges == shared_sges_.end() ? 1 : sges->second);
    add_to_thread(counts.thread, sums);
    summary_.shared_recv_uses.push_back({counts.thread, sums.recvs.recvs, sums.recvs.posts});
    if (const auto found = srq_contexts_.find(counts.srq_record); found != srq_contexts_.end()) {
      add_to_context(found->second, sums);
    }
  }

  void read(const ContextChecks& from) {
    CheckSummary checks{.context = from.context,
                        .memory = from.memory,
                        .wqes = snapshot(from.wqes),
                        .left_out = snapshot(from.left_out),
                        .without_memory = snapshot(from.without_memory),
                        .first_error = snapshot(from.first_error),
                        .differences = {}};
    for (std::size_t kind = 0; kind < kDifferences; ++kind) {
      const DifferenceSlot& slot = from.differences[kind];
      CheckSummary::Found& found = checks.differences[kind];
      found.count = snapshot(slot.count);
      found.filled = __atomic_load_n(&slot.filled, __ATOMIC_ACQUIRE) != 0;
      if (found.filled) found.example = slot.example;
    }
    summary_.checks.push_back(checks);
  }

  void add_to_thread(std::uint32_t number, const Sums& sums) {
    add(summary_.whole, sums);
    if (const auto found = threads_.find(number); found != threads_.end()) {
      add(summary_.threads[found->second].sums, sums);
    }
  }

  void add_to_context(std::uint32_t number, const Sums& sums) {
    if (const auto found = contexts_.find(number); found != contexts_.end()) {
      add(summary_.contexts[found->second].sums, sums);
    }
  }

  Summary& summary_;
  std::map<std::uint32_t, std::size_t> qps_, threads_, contexts_;
  std::map<std::uint32_t, std::uint32_t> shared_sges_, srq_contexts_, cq_contexts_;
};

// Removes unused shared counts, and uses of QPs by threads that did nothing with them.
void remove_unused(Summary& summary) {
  std::vector<std::uint32_t> new_index;
  std::vector<QpSummary> used;
  for (QpSummary& qp : summary.qps) {
    new_index.push_back(static_cast<std::uint32_t>(used.size()));
    if (!qp.unknown || !qp.threads.empty() || qp.sums.posts() > 0) used.push_back(std::move(qp));
  }
  summary.qps = std::move(used);
  std::erase_if(summary.uses, [](const QueueUse& use) {
    return use.requests.empty() && use.recvs + use.received + use.send_completions == 0;
  });
  for (QueueUse& use : summary.uses) use.qp = new_index[use.qp];
}

}  // namespace

Summary read_trace_file(const std::filesystem::path& path) {
  const auto bytes = std::filesystem::file_size(path);
  if (bytes < Arena::kFirst) fail("{}: not a file of a traced process: {} bytes", path.string(), bytes);
  const Mapping mapping(path.string(), bytes);
  const TraceHeader& header = mapping.header();
  if (header.magic != kMagic) fail("{}: not a file of a traced process", path.string());
  if (header.layout != kLayout) fail("{}: written by another build of {}", path.string(), kLibrary);
  if (header.capacity > bytes) {
    fail("{}: truncated: {} of {} bytes", path.string(), bytes, header.capacity.load());
  }
  return summarize(header);
}

std::vector<Summary> read_trace_folder(const std::filesystem::path& folder) {
  std::vector<Summary> summaries;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == kExtension && is_ready(entry.path())) {
      summaries.push_back(read_trace_file(entry.path()));
    }
  }
  std::ranges::sort(summaries, {}, &Summary::began_ns);
  return summaries;
}

std::uint64_t Sums::requests() const {
  std::uint64_t all = 0;
  for (const std::uint64_t count : sends.by_opcode) all += count;
  return all;
}

std::uint64_t Sums::errors() const {
  std::uint64_t all = 0;
  for (const std::uint64_t count : by_status) all += count;
  return all;
}

Summary summarize(const TraceHeader& header) {
  Summary summary{.process = header.process,
                  .program = header.program,
                  .wire = header.wire,
                  .without_room = header.without_room.load(std::memory_order_relaxed),
                  .began_ns = header.began_ns,
                  .began_ticks = header.began_ticks,
                  .contexts = {},
                  .qps = {},
                  .threads = {},
                  .checks = {},
                  .whole = {}};
  Reader reader(summary);
  each_record(header, [&reader](const RecordHead& head) { reader.read(head); });
  remove_unused(summary);
  return summary;
}

Summary summarize_process() {
  return summarize(process.arena.header());
}

}  // namespace verbscope::driver
