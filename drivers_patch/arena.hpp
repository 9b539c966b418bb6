// The memory that the counts of a process lie in: a file that is mapped, so that counts outlive the process, or memory
// without a file where only the process itself reads them. Room is given once and never taken back.
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
  // Room of `capacity` bytes, of which the machine gives what is used, as far as it has it. `path` is made anew; empty:
  // no file. Yields 0, or errno; there is no room then.
  int open(const char* path, std::uint64_t capacity, const WireFacts& wire);
  bool is_open() const { return base_ != nullptr; }
  TraceHeader& header() const { return *reinterpret_cast<TraceHeader*>(base_); }

  // A record, or null when there is no room for it. Takes no lock. The caller publishes it when it is filled.
  template <class Record>
  Record* make() {
    void* const room = take(round_up(sizeof(Record), kStep));
    if (room == nullptr) return nullptr;
    auto* const record = new (room) Record;
    record->head.bytes = static_cast<std::uint32_t>(round_up(sizeof(Record), kStep));
    return record;
  }
  template <class Record>
  static void publish(Record& record) {
    record.head.kind.store(Record::kKind, std::memory_order_release);
  }

  // Bytes of all records so far, the header's too.
  std::uint64_t used() const { return std::min(header().used.load(), header().capacity.load()); }

  // After a fork, in the child: the first `used` bytes of records at the same addresses in a file of its own, with
  // counts of 0. What the parent counted stays the parent's, whose threads may go on meanwhile. Calls nothing that is
  // unsafe in a child of a process with threads. On failure the memory is the child's alone, and no file has what it
  // counts. `path` as of open().
  int divide(const char* path, std::uint64_t used);

  static constexpr std::uint64_t kStep = 64;  // records begin at its multiples
  static constexpr std::uint64_t kFirst = round_up(sizeof(TraceHeader), kStep);

  // Closes it and gives the memory back: for those that own all users of it.
  void close();

 private:
  void* take(std::uint64_t bytes);
  bool back(std::uint64_t end);

  std::byte* base_ = nullptr;
  std::uint64_t mapped_ = 0;              // bytes
  std::atomic<std::uint64_t> backed_{0};  // that the machine has given
};

// Calls `visit(const RecordHead&)` for each record that is published, in the order of their making, from the one `from`
// on if it is given. Works on the file of a process that was killed at any moment: a record that was not filled is left
// out.
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
