#include "drivers_patch/arena.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstring>

#include "drivers_patch/checks.hpp"

namespace verbscope::driver {
namespace {

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// The memory of a file that is made for it, or of none. Null and errno on failure.
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

// Takes the counts out of a record, and leaves what tells of its object.
void forget_counts(RecordHead& head) {
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
      reinterpret_cast<QpRecord&>(head).no_samples = true;
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
  void* const room = map_room(path, capacity);
  if (room == nullptr) return errno;
  base_ = static_cast<std::byte*>(room);
  capacity_ = capacity;
  auto* const made = new (base_) TraceHeader;
  made->capacity = capacity;
  made->used = kFirst;
  made->wire = wire;
  begin(*made);
  made->magic = kMagic;
  return 0;
}

void* Arena::take(std::uint64_t bytes) {
  TraceHeader& known = header();
  const std::uint64_t at = known.used.fetch_add(bytes, std::memory_order_relaxed);
  if (at + bytes > capacity_) return nullptr;
  auto* const head = reinterpret_cast<RecordHead*>(base_ + at);
  head->bytes = static_cast<std::uint32_t>(bytes);
  // It is to be there while the record is filled, which begins as memory without a value for the compiler.
  asm volatile("" : : "r"(head) : "memory");
  return head;
}

int Arena::divide(const char* path) {
  int error = 0;
  void* room = map_room(path, capacity_);
  if (room == nullptr) {
    error = errno;
    room = map_room("", capacity_);
    if (room == nullptr) return error;
  }
  const std::uint64_t used = std::min(header().used.load(), capacity_);
  std::memcpy(room, base_, used);
  auto& copy = *static_cast<TraceHeader*>(room);
  copy.used = used;
  begin(copy);
  each_record(copy, [](const RecordHead& head) { forget_counts(const_cast<RecordHead&>(head)); });
  if (mremap(room, capacity_, capacity_, MREMAP_MAYMOVE | MREMAP_FIXED, base_) == MAP_FAILED) return errno;
  return error;
}

void Arena::close() {
  munmap(base_, capacity_);
  base_ = nullptr;
}

}  // namespace verbscope::driver
