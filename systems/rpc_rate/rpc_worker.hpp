// A worker thread of the RPC benchmarks: it handles requests that threads with endpoints give to it.
#pragma once

#include <cstdint>

#include "common/histogram.hpp"
#include "microbench/bench/workload.hpp"
#include "systems/rpc/workers.hpp"
#include "systems/rpc_rate/rpc_load.hpp"

namespace verbscope {

// What the benchmarks read of a worker.
class RpcWorker : public Workload {
 public:
  // Of the measured interval: how long requests waited in its queue, and how long it worked.
  virtual const Histogram& waits() const = 0;
  virtual Picos busy() const = 0;
};

// Work: as of RpcThreadOn.
template <class Work>
class RpcWorkerOn final : public WorkloadOn<RpcWorkerOn<Work>, RpcWorker> {
 public:
  // `number`: among the workers of the machine.
  RpcWorkerOn(const ThreadSetup& setup, const RpcLoad& load, const typename Work::Options& work, std::uint32_t number)
      : work_(setup, load_of(setup, load), work, caller_number(setup)),
        number_(number),
        queues_(setup.region.bytes.data(), load.worker_queues) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    queues_.requests(number_).watch(node);
    while (!control.quit.load(std::memory_order_relaxed)) {
      const Picos begin = node.now();
      const bool worked = queues_.work(node, number_, [&](const WorkerRequest& work) {
        set_measuring(in_interval(control.phase.load(std::memory_order_relaxed)));
        if (measuring_) waits_.record(node.now() - work.queued);
        if (!work_.answer(node, work.request, first_word(work.request.data), *work.response)) ++wrong_;
      });
      if (worked) {
        busy_ += node.now() - begin;
      } else {
        node.idle();
      }
    }
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t wrong() const override { return wrong_; }

  const Histogram& waits() const override { return waits_; }
  Picos busy() const override { return measuring_ ? busy_ : measured_busy_; }

 private:
  // Sets the counts to 0 when an interval begins, and keeps them when it ends.
  void set_measuring(bool measuring) {
    if (measuring && !measuring_) {
      waits_.clear();
      busy_ = Picos(0);
    }
    if (!measuring && measuring_) measured_busy_ = busy_;
    measuring_ = measuring;
  }

  Work work_;
  std::uint32_t number_;
  WorkerQueues queues_;
  Histogram waits_;
  Picos busy_{0};
  Picos measured_busy_{0};  // of the last interval that is over
  bool measuring_ = false;
  std::uint64_t wrong_ = 0;
};

}  // namespace verbscope
