// The lock that a driver takes for each call on a queue (rdma-core 44, providers/mlx5: mlx5_spin_lock of a QP's send
// queue and of a CQ). It costs nothing extra while only one thread uses the queue. From the second thread on it is a
// spin lock, and the queue's own cache lines move with it.
#pragma once

#include <memory>

#include "nic_sim/host/spin_lock.hpp"

namespace verbscope::sim {

class DriverLock {
 public:
  // True if no other thread has used the queue so far.
  bool is_alone(SimThread& thread) {
    if (user_ == nullptr) user_ = &thread;
    return user_ == &thread && spin_ == nullptr;
  }
  // Takes the lock for a call by `thread` that holds the queue for `time`. Precondition: is_alone() is false for it.
  void take(SimThread& thread, Picos time, const HostProfile& host, LockTimes& times) {
    if (spin_ == nullptr) spin_ = std::make_unique<SpinLock>(host, host.queue_lines, times);
    spin_->take(thread, time);
  }

 private:
  SimThread* user_ = nullptr;  // the first user
  std::unique_ptr<SpinLock> spin_;
};

}  // namespace verbscope::sim
