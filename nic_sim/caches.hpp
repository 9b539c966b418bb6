// The NIC's caches of host memory: WQEs between arrival and last use, and the state of QPs. Both hold so many bytes and
// evict the oldest; who misses reads over PCIe.
#pragma once

#include "nic_sim/age_list.hpp"
#include "nic_sim/objects.hpp"

namespace verbscope::sim {

class WqeCache {
 public:
  explicit WqeCache(Bytes capacity) : capacity_(capacity.value) {}

  // Holds `wqe`, throwing out the oldest ones until it fits.
  void insert(SendWqe& wqe) {
    list_.insert(wqe);
    wqe.cached = true;
    used_ += wqe.bytes;
    while (used_ > capacity_) remove(list_.oldest());
  }
  // The WQE had its last use, wherever it is.
  void release(SendWqe& wqe) {
    if (wqe.cached) remove(wqe);
    wqe.staged = false;
  }

 private:
  void remove(SendWqe& wqe) {
    list_.remove(wqe);
    wqe.cached = false;
    used_ -= wqe.bytes;
  }

  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
  AgeList<SendWqe, &SendWqe::newer, &SendWqe::older> list_;
};

class QpContextCache {
 public:
  QpContextCache(Bytes capacity, Bytes context) : places_(capacity.value / context.value) {}

  // Whether the state of `qp` is here. After a miss it is, and the one unused for longest may have left.
  bool use(SimQp& qp) {
    if (qp.context_cached) {
      list_.touch(qp);
      return true;
    }
    if (held_ == places_ && held_ > 0) drop(list_.oldest());
    if (held_ < places_) {
      list_.insert(qp);
      qp.context_cached = true;
      ++held_;
    }
    return false;
  }
  void drop(SimQp& qp) {
    if (!qp.context_cached) return;
    list_.remove(qp);
    qp.context_cached = false;
    --held_;
  }

 private:
  std::uint64_t places_;
  std::uint64_t held_ = 0;
  AgeList<SimQp, &SimQp::context_newer, &SimQp::context_older> list_;
};

}  // namespace verbscope::sim
