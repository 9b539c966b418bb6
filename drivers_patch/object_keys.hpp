// The keys of an object in the process's lookup: of its record, and of what each thread counts for it. For the control
// path, which holds its lock.
#pragma once

#include <cstdint>

#include "drivers_patch/process.hpp"

namespace verbscope::driver {

inline std::uint64_t record_key(const void* object) {
  return kRecordBits | key_of(object);
}

// Under which threads find their counts of an object.
void erase_thread_keys(std::uint64_t key);

// All keys of a QP. False when there is no room for them.
bool insert_keys(QpRecord& qp);
void erase_keys(const QpRecord& qp);

// Those of a completion queue or a shared receive queue.
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
