// Requests that worker threads handle (eRPC, NSDI 2019, section 3.2). The thread of an endpoint gives a request to a
// worker, with a buffer for its response, and sends the response that comes back. Endpoints do not depend on this: for
// them a worker is a handler that answers later. Data path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "microbench/loop/choice.hpp"
#include "systems/rpc/message_buffer.hpp"
#include "systems/rpc/rpc_server.hpp"
#include "systems/rpc/shared_queue.hpp"

namespace verbscope {

struct WorkerRequest {
  RpcRequest request;                 // of a type served with RequestLife::until_response
  MessageBuffer* response = nullptr;  // from RpcEndpoint::response()
  std::uint32_t endpoint = 0;         // number of the thread that sends the response
  Picos queued{0};                    // when it was given to the worker
  void* context = nullptr;            // of the program
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

  // A pass of a worker: takes its next request, calls handle(request), and returns the request to its endpoint. Returns
  // false if there is none.
  template <Node N, class Handle>
  bool work(N& node, std::size_t worker, Handle&& handle) {
    node.poll_memory();
    WorkerRequest request;
    if (!requests_[worker].pop(node, request)) return false;
    handle(request);
    responses_[request.endpoint].push(node, request.request.handle);
    return true;
  }

 private:
  std::vector<Requests> requests_;
  std::vector<Responses> responses_;
};

// Gives the requests of one endpoint to workers at random, and sends the responses that come back.
class HandOver {
 public:
  // `endpoint`: number of the thread. `seed`: of the choice of workers.
  HandOver(WorkerQueues queues, std::uint32_t endpoint, std::uint64_t seed)
      : queues_(std::move(queues)), endpoint_(endpoint), turn_(queues_.workers(), true, seed, 0) {}

  // Call once in the thread of the endpoint, before the first pass.
  template <Node N>
  void watch(N& node) {
    queues_.responses(endpoint_).watch(node);
  }
  // From a handler: the request goes to a worker with the next give().
  void add(const RpcRequest& request, MessageBuffer* response, Picos now, void* context = nullptr) {
    waiting_.push_back({request, response, endpoint_, now, context});
  }
  // After a pass of the endpoint.
  template <Node N>
  void give(N& node) {
    for (const WorkerRequest& request : waiting_) queues_.requests(turn_.next()).push(node, request);
    given_ += waiting_.size();
    waiting_.clear();
  }
  // Before a pass. Returns the number of responses.
  template <Node N, class Endpoint>
  int send_finished(N& node, Endpoint& endpoint) {
    int count = 0;
    node.poll_memory();
    for (RpcHandle handle; queues_.responses(endpoint_).pop(node, handle); ++count) endpoint.respond(handle);
    given_ -= static_cast<std::uint64_t>(count);
    return count;
  }
  // Requests that workers have.
  std::uint64_t given() const { return given_; }
  // Drops the requests that were not given. Their sessions must be closed.
  template <class Endpoint>
  void drop(Endpoint& endpoint) {
    for (const WorkerRequest& request : std::exchange(waiting_, {})) endpoint.respond(request.request.handle);
  }

 private:
  WorkerQueues queues_;
  std::uint32_t endpoint_;
  Choice turn_;
  std::vector<WorkerRequest> waiting_;  // for the end of the pass
  std::uint64_t given_ = 0;
};

}  // namespace verbscope
