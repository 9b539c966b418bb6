// A worker thread of the RPC benchmarks: it handles requests that threads with endpoints give to it.
#pragma once

#include <cstdint>

#include "microbench/bench/workload.hpp"
#include "systems/rpc/workers.hpp"
#include "systems/rpc_rate/rpc_thread.hpp"

namespace verbscope {

class RpcWorker final : public WorkloadOn<RpcWorker> {
 public:
  // `number`: among the workers of the machine.
  RpcWorker(const ThreadSetup& setup, const RpcLoad& load, std::uint32_t number)
      : load_(load), number_(number), queues_(setup.region.bytes.data(), load.worker_queues) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    WorkerQueues::Requests& requests = queues_.requests(number_);
    requests.watch(node);
    while (!control.quit.load(std::memory_order_relaxed)) {
      node.poll_memory();
      if (WorkerRequest work; requests.pop(node, work)) {
        handle(node, work);
      } else {
        node.idle();
      }
    }
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t wrong() const override { return wrong_; }

 private:
  template <Node N>
  void handle(N& node, const WorkerRequest& work) {
    const std::uint64_t tag = first_word(work.request.data);
    spend(node, load_.handler_time);
    // The request must not change while it is handled.
    if (!words_good(work.request.data, work.request.bytes, tag)) ++wrong_;
    fill_words(work.response->data, work.response->bytes, tag | kResponseMark);
    queues_.responses(work.endpoint).push(node, work.request.handle);
  }

  // Declares the time on a simulated machine, and spins on a host.
  template <Node N>
  static void spend(N& node, Nanos time) {
    const Picos until = node.now() + time;
    node.compute(time);
    while (node.now() < until) cpu_relax();
  }

  RpcLoad load_;
  std::uint32_t number_;
  WorkerQueues queues_;
  std::uint64_t wrong_ = 0;
};

}  // namespace verbscope
