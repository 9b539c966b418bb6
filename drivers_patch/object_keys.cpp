#include "drivers_patch/object_keys.hpp"

#include <algorithm>

namespace verbscope::driver {
namespace {

std::uint64_t number_key(const QpRecord& qp) {
  return number_tag(qp.context) | (qp.qp_num & 0xffffff);
}

}  // namespace

void erase_thread_keys(std::uint64_t key) {
  const std::uint32_t threads = std::min(process.threads.load(), kMaxThreads);
  for (std::uint64_t thread = 1; thread <= threads; ++thread) process.lookup.erase(thread << 48 | key);
}

bool insert_keys(QpRecord& qp) {
  if (!process.lookup.insert(record_key(qp.object), &qp)) return false;
  if (!process.lookup.insert(kRecordBits | number_key(qp), &qp)) return false;
  return qp.builder_calls == nullptr || process.lookup.insert(record_key(qp.extended) | kBuilderBit, qp.builder_calls);
}

void erase_keys(const QpRecord& qp) {
  process.lookup.erase(record_key(qp.object));
  process.lookup.erase(kRecordBits | number_key(qp));
  if (qp.builder_calls != nullptr) process.lookup.erase(record_key(qp.extended) | kBuilderBit);
  for (QpCounts* counts = qp.counts.load(); counts != nullptr; counts = counts->next) {
    const std::uint64_t thread = std::uint64_t{counts->thread} << 48;
    counts->recent[0] = counts->recent[1] = {};
    counts->object = nullptr;
    process.lookup.erase(thread | key_of(qp.object));
    process.lookup.erase(thread | number_key(qp));
    if (qp.builder_calls != nullptr) process.lookup.erase(thread | key_of(qp.extended) | kBuilderBit);
  }
}

}  // namespace verbscope::driver
