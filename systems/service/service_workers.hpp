// Handlers that may run on worker threads, and the workers of one process.
#pragma once

#include <chrono>
#include <cstdint>

#include "machine/memory.hpp"
#include "machine/node.hpp"
#include "systems/rpc/workers.hpp"
#include "systems/service/service_options.hpp"

namespace verbscope {

// A request and its response, while the handler runs.
struct ServiceWork {
  const RpcRequest& request;
  MessageBuffer& response;  // has the `bytes` that serve_by_worker() names; the handler fills it and may reduce them
  Picos computing{0};       // the handler's computing time, which passes on a simulated cluster; nothing on a host
};
// Runs on any thread of the process, at the same time as other handlers. It must not use a ServiceThread.
using WorkHandler = void (*)(void* context, ServiceWork& work) noexcept;

// How a type of requests is handled, the context of these requests in the queues.
struct WorkType {
  WorkHandler handler = nullptr;
  void* context = nullptr;
  std::uint32_t response_bytes = 0;

  // Handles a request. Returns the declared computing time.
  Picos handle(const RpcRequest& request, MessageBuffer& response) const {
    ServiceWork work{request, response};
    handler(context, work);
    return work.computing;
  }
};

// The workers of one process, --workers of them.
class ServiceWorkers {
 public:
  // Throws Error.
  explicit ServiceWorkers(const ServiceOptions& options)
      : shape_{.endpoints = options.threads,
               .workers = options.workers,
               .requests = options.rpc.most_sessions() * kSessionSlots},
        memory_(Bytes(WorkerQueues::bytes(shape_)), false) {}

  WorkerQueues queues() const { return {memory_.data(), shape_}; }

  // Worker `number` handles requests until stopped() is true.
  template <Node N, class Stopped>
  void run(N& node, std::uint32_t number, Stopped&& stopped) const {
    WorkerQueues queues = this->queues();
    queues.requests(number).watch(node);
    while (!stopped()) {
      const bool worked = queues.work(node, number, [&node](const WorkerRequest& work) {
        const auto& type = *static_cast<const WorkType*>(work.context);
        node.compute(std::chrono::duration_cast<Nanos>(type.handle(work.request, *work.response)));
      });
      if (!worked) node.idle_until(node.now() + kStopCheck);
    }
  }

 private:
  static constexpr Picos kStopCheck = std::chrono::microseconds(20);  // simulated

  WorkerQueues::Shape shape_;
  Buffer memory_;
};

}  // namespace verbscope
