// The lookup keys of an object: one for its record, and one per thread for that thread's counts. Callers hold
// process.control.
#pragma once

#include <cstdint>

#include "drivers_patch/process.hpp"

namespace verbscope::driver {

inline std::uint64_t record_key(const void* object) {
  return kRecordBits | key_of(object);
}

// Erases the keys of all threads for an object.
void erase_thread_keys(std::uint64_t key);

// All keys of a QP. False if there is no room.
bool insert_keys(QpRecord& qp);
void erase_keys(const QpRecord& qp);

// Keys of a completion queue or a shared receive queue.
template <class Record>
bool insert_keys(Record& record) {
  return process.lookup.insert(record_key(record.object), &record);
}
template <class Record>
void erase_keys(const Record& record) {
  process.lookup.erase(record_key(record.object));
  erase_thread_keys(key_of(record.object));
}

}  // namespace verbscope::driver
