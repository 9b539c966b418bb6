// Requests that worker threads handle (eRPC, NSDI 2019, section 3.2). The thread of an endpoint gives a request to a
// worker, with a buffer for its response, and sends the response that comes back. Endpoints do not depend on this: for
// them a worker is a handler that answers later. Data path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "systems/rpc/message_buffer.hpp"
#include "systems/rpc/rpc_server.hpp"
#include "systems/rpc/shared_queue.hpp"

namespace verbscope {

struct WorkerRequest {
  RpcRequest request;                 // of a type served with RequestLife::until_response
  MessageBuffer* response = nullptr;  // from RpcEndpoint::response()
  std::uint32_t endpoint = 0;         // number of the thread that sends the response
  Picos queued{0};                    // when it was given to the worker
};

// The queues between the threads of one machine that have endpoints and its workers, in memory of the machine.
class WorkerQueues {
 public:
  struct Shape {
    std::uint32_t endpoints = 0;
    std::uint32_t workers = 0;
    std::uint32_t requests = 0;  // of one endpoint that workers may have at a time
  };

  static std::uint64_t bytes(const Shape& shape) {
    return shape.workers * Requests::bytes(shape.endpoints * shape.requests) +
           shape.endpoints * Responses::bytes(shape.requests);
  }
  // `memory`: of bytes(shape) bytes, zero at the start, the same for all threads of the machine.
  WorkerQueues(std::byte* memory, const Shape& shape) {
    const auto place = [&memory]<class Queue>(std::vector<Queue>& queues, std::uint32_t count, std::uint32_t capacity) {
      for (std::uint32_t i = 0; i < count; ++i, memory += Queue::bytes(capacity)) queues.emplace_back(memory, capacity);
    };
    place(requests_, shape.workers, shape.endpoints * shape.requests);
    place(responses_, shape.endpoints, shape.requests);
  }

  using Requests = SharedQueue<WorkerRequest>;
  using Responses = SharedQueue<RpcHandle>;
  Requests& requests(std::size_t worker) { return requests_[worker]; }
  Responses& responses(std::size_t endpoint) { return responses_[endpoint]; }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(requests_.size()); }

 private:
  std::vector<Requests> requests_;
  std::vector<Responses> responses_;
};

}  // namespace verbscope
