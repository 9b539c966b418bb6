#include "nic_sim/nic/qp_contexts.hpp"

#include "wire/pcie.hpp"

namespace verbscope::sim {

void QpContexts::begin_reads() {
  while (!line_.empty()) {
    const Miss miss = line_.front();
    const bool cached = miss.context->place.cached();
    if (!cached && free_reads_.empty()) return;
    line_.pop_front();
    if (cached) {
      ++counts_.qp_context_hits;
      engine_.schedule(engine_.now(), miss.then, miss.object, miss.argument);
      continue;
    }
    const std::uint64_t read_number = free_reads_.back();
    free_reads_.pop_back();
    reads_held_ -= engine_.now();
    reads_held_idle_ += bus_.idle_read(miss.context->bytes) + miss_time_;
    reads_[read_number] = miss;
    ++counts_.qp_context_misses;
    counts_.qp_context_read_lines += divide_up(miss.context->bytes, kCacheLine.value);
    bus_.dma_read(0, miss.context->bytes, &read, this, read_number);
  }
}

void QpContexts::read(void* object, std::uint64_t number) {
  const QpContexts& self = *static_cast<QpContexts*>(object);
  if (self.miss_time_ == Picos(0)) return available(object, number);
  self.engine_.schedule(self.engine_.now() + self.miss_time_, &available, object, number);
}

void QpContexts::available(void* object, std::uint64_t number) {
  QpContexts& self = *static_cast<QpContexts*>(object);
  const Miss miss = self.reads_[number];
  self.free_reads_.push_back(number);
  self.reads_held_ += self.engine_.now();
  if (!miss.context->gone && !miss.context->place.cached()) self.cache_of(*miss.context).insert(*miss.context);
  self.begin_reads();
  miss.then(miss.object, miss.argument);
}

}  // namespace verbscope::sim
