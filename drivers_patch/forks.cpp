#include "drivers_patch/forks.hpp"

#include <unistd.h>

#include "drivers_patch/object_keys.hpp"
#include "drivers_patch/objects.hpp"
#include "drivers_patch/process.hpp"

namespace verbscope::driver {
namespace {

std::uint64_t used_at_fork = 0;  // bytes of records that the child copies

// The parent may have destroyed a QP before the child copied its record, but in the child the QP still exists. The
// lookup is not in the file and has the state at the fork.
void restore(RecordHead& head) {
  const RecordKind kind = head.kind;
  if (kind == RecordKind::queue_pair) {
    auto& qp = reinterpret_cast<QpRecord&>(head);
    if (qp.object != nullptr) qp.alive = find_record<QpRecord>(qp.object) == &qp;
  } else if (kind == RecordKind::qp_counts) {
    auto& counts = reinterpret_cast<QpCounts&>(head);
    const void* const object = counts.qp->object;
    const std::uint64_t thread = std::uint64_t{counts.thread} << 48;
    const bool found = object != nullptr && process.lookup.find(thread | key_of(object)) == &counts;
    counts.object = found ? object : nullptr;
  } else if (kind == RecordKind::thread) {
    auto& thread = reinterpret_cast<ThreadRecord&>(head);
    if (thread.number == thread_bits >> 48) thread.tid = gettid();
  }
}

}  // namespace

void hold_for_fork() {
  process.control.lock();
  if (counting()) used_at_fork = process.arena.used();
}

void go_on_in_parent() {
  process.control.unlock();
}

void go_on_in_child(const char* path) {
  if (counting()) {
    process.arena.divide(path, used_at_fork);
    each_record(process.arena.header(), [](const RecordHead& head) { restore(const_cast<RecordHead&>(head)); });
  }
  process.control.unlock();
}

}  // namespace verbscope::driver
