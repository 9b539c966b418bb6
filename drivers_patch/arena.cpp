#include "drivers_patch/arena.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstring>

namespace verbscope::driver {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 16;  // bytes requested from the system at once

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Maps a new file, or anonymous memory if `path` is empty. Null and errno on failure.
void* map_room(const char* path, std::uint64_t capacity) {
  if (path[0] == '\0') {
    void* const room =
        mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return room == MAP_FAILED ? nullptr : room;
  }
  const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void* room = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(capacity)) == 0) {
    room = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return room == MAP_FAILED ? nullptr : room;
}

// Allocates the pages of `bytes` from `begin` on, so that a full file system is an error here, not a signal at the
// first write. Returns 0 or errno. Kernels before 5.14 do not support this; they allocate at the first write.
int populate(std::byte* begin, std::uint64_t bytes) {
  if (madvise(begin, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) return 0;
  return errno;
}

// As map_room(), with the first `provided` bytes allocated.
std::byte* provided_room(const char* path, std::uint64_t capacity, std::uint64_t provided) {
  auto* const room = static_cast<std::byte*>(map_room(path, capacity));
  if (room == nullptr || populate(room, provided) == 0) return room;
  munmap(room, capacity);
  errno = ENOSPC;
  return nullptr;
}

// Copies records that another process continues to write, word by word in ascending order. A record is complete before
// an earlier one points to it, so it is copied complete. memcpy() guarantees no order.
[[gnu::no_sanitize_thread]] void copy_in_order(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = *reinterpret_cast<const volatile std::uint64_t*>(from + at);
    std::memcpy(to + at, &word, sizeof word);
  }
}

// A parent's thread that has allocated a record stores its length soon, unless it is stopped. Without the length, a
// search for the next record would land inside this one. So wait for it, for a limited time.
[[gnu::no_sanitize_thread]] void wait_for_lengths(std::byte* copy, const std::byte* original, std::uint64_t used) {
  int patience = 1000;
  for (std::uint64_t at = Arena::kFirst; at + sizeof(RecordHead) <= used;) {
    auto& head = *reinterpret_cast<RecordHead*>(copy + at);
    const auto& known = *reinterpret_cast<const RecordHead*>(original + at);
    while (head.bytes == 0 && patience > 0) {
      head.bytes = *const_cast<const volatile std::uint32_t*>(&known.bytes);
      if (head.bytes != 0) break;
      sched_yield();
      --patience;
    }
    at += std::max<std::uint64_t>(head.bytes, Arena::kStep);
  }
}

void begin(TraceHeader& header) {
  header.layout = kLayout;
  header.process = getpid();
  header.parent = getppid();
  header.began_ns = monotonic_ns();
  header.began_ticks = __rdtsc();
}

void clear(QpCounts& counts) {
  counts.send_completions = 0;
  for (ShapeSlot& slot : counts.shapes) slot.count = 0;
  for (ReceiveSlot& slot : counts.received) slot.count = 0;
  counts.spilled = {};
  counts.received_spilled = {};
  counts.lists = counts.turns = counts.failed_posts = counts.samples = 0;
  counts.recvs = {};
  std::memset(counts.by_list, 0, sizeof counts.by_list);
  std::memset(counts.by_status, 0, sizeof counts.by_status);
  std::memset(counts.by_time, 0, sizeof counts.by_time);
  counts.atomics = {};
  counts.reads_outstanding = 0;
}

void clear(PollCounts& counts) {
  counts.empty = counts.in_passing = counts.polls = counts.completions = counts.failed = counts.arms = counts.batch = 0;
  std::memset(counts.by_batch, 0, sizeof counts.by_batch);
}

void clear(ContextRecord& context) {
  context.registrations = context.deregistrations = context.registered_bytes = context.registered_pages = 0;
  context.qps_made = context.qps_gone = context.cqs_made = context.modifications = context.address_handles = 0;
  context.late_registrations = context.late_pages = 0;
}

void clear(ContextChecks& checks) {
  checks.wqes = checks.left_out = checks.without_memory = checks.first_error = 0;
  for (DifferenceSlot& slot : checks.differences) slot = {};
}

// A parent's records, copied by its child and not yet moved to the parent's addresses.
struct ParentRecords {
  std::byte* copy;
  const std::byte* original;
  std::uint64_t used;

  template <class Record>
  bool has(const Record* record) const {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(record) - original) < used;
  }
  template <class Record>
  Record& of(const Record* record) const {
    return *reinterpret_cast<Record*>(copy + (reinterpret_cast<const std::byte*>(record) - original));
  }
  // The first counts in the list that were copied. The others were made since by threads of the parent.
  QpCounts* first_of(QpCounts* counts) const {
    while (counts != nullptr && !has(counts)) counts = counts->next;
    return counts;
  }
};

// Removes a QP's pointers to records that were not copied.
void drop_uncopied(QpRecord& qp, const ParentRecords& records) {
  QpCounts* counts = records.first_of(qp.counts.load());
  qp.counts = counts;
  while (counts != nullptr) {
    QpCounts& copied = records.of(counts);
    counts = copied.next = records.first_of(copied.next);
  }
  if (qp.checked.load() != nullptr && !records.has(qp.checked.load())) qp.checked = nullptr;
  qp.no_samples = true;
}

// Clears the counts of a record and keeps the description of its object.
void reset_counts(RecordHead& head, const ParentRecords& records) {
  switch (head.kind.load()) {
    case RecordKind::qp_counts:
      clear(reinterpret_cast<QpCounts&>(head));
      break;
    case RecordKind::poll_counts:
      clear(reinterpret_cast<PollCounts&>(head));
      break;
    case RecordKind::recv_counts:
      reinterpret_cast<RecvCounts&>(head).recvs = {};
      break;
    case RecordKind::context:
      clear(reinterpret_cast<ContextRecord&>(head));
      break;
    case RecordKind::queue_pair:
      drop_uncopied(reinterpret_cast<QpRecord&>(head), records);
      break;
    case RecordKind::context_checks:
      clear(reinterpret_cast<ContextChecks&>(head));
      break;
    case RecordKind::checked_queue:
      reinterpret_cast<CheckedQueue&>(head).ended = reinterpret_cast<CheckedQueue&>(head).begun.load();
      break;
    default:
      break;
  }
}

}  // namespace

int Arena::open(const char* path, std::uint64_t capacity, const WireFacts& wire) {
  const std::uint64_t provided = std::min(kPiece, capacity);
  std::byte* const room = provided_room(path, capacity, provided);
  if (room == nullptr) return errno;
  base_ = room;
  mapped_ = capacity;
  provided_ = provided;
  auto* const made = new (base_) TraceHeader;
  made->capacity = capacity;
  made->used = kFirst;
  made->wire = wire;
  begin(*made);
  made->magic = kMagic;
  return 0;
}

void* Arena::allocate(std::uint64_t bytes) {
  TraceHeader& known = header();
  const std::uint64_t at = known.used.fetch_add(bytes, std::memory_order_relaxed);
  if (at + bytes > known.capacity.load(std::memory_order_relaxed) || !provide_pages(at + bytes)) return nullptr;
  auto* const head = reinterpret_cast<RecordHead*>(base_ + at);
  head->bytes = static_cast<std::uint32_t>(bytes);
  // Keeps the store of `bytes`: the compiler may treat memory of a new record as uninitialized.
  asm volatile("" : : "r"(head) : "memory");
  return head;
}

// False if the system has no more memory: the capacity then ends here. Threads may request the same range at once.
bool Arena::provide_pages(std::uint64_t end) {
  std::uint64_t provided = provided_.load();
  if (end <= provided) return true;
  const std::uint64_t next = std::min(round_up(end, kPiece), mapped_);
  if (populate(base_ + provided, next - provided) != 0) {
    header().capacity = provided;
    return false;
  }
  while (provided < next && !provided_.compare_exchange_weak(provided, next)) {
  }
  return true;
}

int Arena::copy_for_child(const char* path, std::uint64_t used) {
  int error = 0;
  const std::uint64_t provided = std::min(round_up(used, kPiece), mapped_);
  std::byte* room = provided_room(path, mapped_, provided);
  if (room == nullptr) {
    error = errno;
    room = provided_room("", mapped_, provided);
    if (room == nullptr) return error;
  }
  constexpr std::uint64_t kBehindMagic = sizeof(TraceHeader::magic);
  copy_in_order(room + kBehindMagic, base_ + kBehindMagic, used - kBehindMagic);
  wait_for_lengths(room, base_, used);
  auto& copy = *reinterpret_cast<TraceHeader*>(room);
  copy.used = used;
  copy.capacity = mapped_;
  begin(copy);
  const ParentRecords records{room, base_, used};
  each_record(copy, [&records](const RecordHead& head) { reset_counts(const_cast<RecordHead&>(head), records); });
  copy.magic = kMagic;
  if (mremap(room, mapped_, mapped_, MREMAP_MAYMOVE | MREMAP_FIXED, base_) == MAP_FAILED) return errno;
  provided_ = provided;
  return error;
}

void Arena::close() {
  munmap(base_, mapped_);
  base_ = nullptr;
}

}  // namespace verbscope::driver
