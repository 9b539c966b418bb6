// The lock that a driver takes for each call on a queue (rdma-core 44, providers/mlx5: mlx5_spin_lock of a QP's send
// queue and of a CQ). As long as one thread alone uses the queue it costs nothing beyond the call; from the second
// thread on it is a spin lock, with which the queue's own cache lines come over.
#pragma once

#include <memory>

#include "nic_sim/host/spin_lock.hpp"

namespace verbscope::sim {

class DriverLock {
 public:
  // Whether `thread` is the only one to have used the queue so far.
  bool is_alone(SimThread& thread) {
    if (user_ == nullptr) user_ = &thread;
    return user_ == &thread && spin_ == nullptr;
  }
  // `thread`, which is not alone, begins a call for which it keeps the queue for `time`.
  void take(SimThread& thread, Picos time, const HostProfile& host, LockTimes& times) {
    if (spin_ == nullptr) spin_ = std::make_unique<SpinLock>(host, host.queue_lines, times);
    spin_->take(thread, time);
  }

 private:
  SimThread* user_ = nullptr;  // the first
  std::unique_ptr<SpinLock> spin_;
};

}  // namespace verbscope::sim
