// The memory of a process's counts: a mapped file, so that counts outlive the process, or anonymous memory if only the
// process itself reads them. Records are never freed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "common/units.hpp"
#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

class Arena {
 public:
  // Reserves `capacity` bytes; the system provides pages as they are used. Creates the file `path`; empty: no file.
  // Returns 0 or errno.
  int open(const char* path, std::uint64_t capacity, const WireFacts& wire);
  bool is_open() const { return base_ != nullptr; }
  TraceHeader& header() const { return *reinterpret_cast<TraceHeader*>(base_); }

  // Returns a record, or null if there is no room. Lock-free. The caller fills the record and then publishes it.
  template <class Record>
  Record* make() {
    void* const room = allocate(round_up(sizeof(Record), kStep));
    if (room == nullptr) return nullptr;
    auto* const record = new (room) Record;
    record->head.bytes = static_cast<std::uint32_t>(round_up(sizeof(Record), kStep));
    return record;
  }
  template <class Record>
  static void publish(Record& record) {
    record.head.kind.store(Record::kKind, std::memory_order_release);
  }

  // Bytes of all records so far, including the header.
  std::uint64_t used() const { return std::min(header().used.load(), header().capacity.load()); }

  // In the child after a fork: copies the first `used` bytes of records to a file of its own at the same addresses,
  // with counts of 0. The parent keeps its counts, and its threads may continue meanwhile. Async-signal-safe, as the
  // child of a process with threads requires. On failure the memory is private to the child, and its counts are in no
  // file. `path`: as for open().
  int copy_for_child(const char* path, std::uint64_t used);

  static constexpr std::uint64_t kStep = 64;  // alignment of records
  static constexpr std::uint64_t kFirst = round_up(sizeof(TraceHeader), kStep);

  // Unmaps the memory. The caller must own all users of it.
  void close();

 private:
  void* allocate(std::uint64_t bytes);
  bool provide_pages(std::uint64_t end);

  std::byte* base_ = nullptr;
  std::uint64_t mapped_ = 0;                // bytes
  std::atomic<std::uint64_t> provided_{0};  // bytes that the system has provided
};

// Calls `visit(const RecordHead&)` for each published record, in order of creation, starting at `from` if given. Works
// on the file of a process that was killed at any moment: records that were not filled are skipped.
template <class Visit>
void each_record(const TraceHeader& header, Visit&& visit, const RecordHead* from = nullptr) {
  const auto* const base = reinterpret_cast<const std::byte*>(&header);
  const std::uint64_t end = std::min(header.used.load(std::memory_order_acquire), header.capacity.load());
  const auto first =
      from == nullptr ? Arena::kFirst : static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(from) - base);
  for (std::uint64_t at = first; at + sizeof(RecordHead) <= end;) {
    const auto& head = *reinterpret_cast<const RecordHead*>(base + at);
    if (head.kind.load(std::memory_order_acquire) != RecordKind::none) visit(head);
    at += std::max<std::uint64_t>(head.bytes, Arena::kStep);
  }
}

}  // namespace verbscope::driver
