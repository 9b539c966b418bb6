// The one way to change an atomic on which threads of the host sleep.
#pragma once

#include <atomic>

namespace verbscope {

// Stores `value` and wakes all who sleep on `atomic` (std::atomic::wait). The store is sequentially consistent, as is
// the count of sleepers, which notify_all() of libstdc++ 12 reads next and without a fence: were a weaker store still
// on its way then, one who is about to sleep would see the old value, and nobody would wake it.
template <class T>
void store_and_wake(std::atomic<T>& atomic, T value) {
  atomic.store(value, std::memory_order_seq_cst);
  atomic.notify_all();
}

}  // namespace verbscope
