#include "harness/sweep/ordered_results.hpp"

namespace verbscope {

bool OrderedResults::wait_turn(std::size_t index) {
  std::unique_lock lock(mutex_);
  moved_.wait(lock, [&] { return closed_ || index < next_ + most_ahead_; });
  return !closed_;
}

void OrderedResults::add(std::size_t index, const Record& record) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    writer_.append(record);  // the point ended after close(): kept, out of order
    return;
  }
  waiting_.emplace(index, record);
  try {
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; first = waiting_.begin()) {
      writer_.append(first->second);
      waiting_.erase(first);
      ++next_;
    }
  } catch (...) {
    closed_ = true;
    moved_.notify_all();
    throw;
  }
  moved_.notify_all();
}

void OrderedResults::close() {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = true;
  moved_.notify_all();
  for (const auto& [index, record] : waiting_) writer_.append(record);
  waiting_.clear();
}

}  // namespace verbscope
