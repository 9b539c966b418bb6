// The workload of a thread that receives: the loop of recv_loop.hpp over prebuilt RECVs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/recv_ring.hpp"

namespace verbscope {

// RECVs are posted in lists, unless asked otherwise of 32, or of half of a shallow queue. The queue holds whole lists.
inline constexpr std::uint32_t kRecvList = 32;
constexpr std::uint32_t recv_list(std::uint32_t depth) {
  return depth / 2 >= kRecvList ? kRecvList : depth < 2 ? 1 : depth / 2;
}
constexpr std::uint32_t recv_list(const Operation& operation) {
  return operation.recv_list != 0 ? operation.recv_list : recv_list(operation.rx_depth);
}

// How the receive buffers of a queue with `ring` RECVs lie: a payload begins on a cache line, on UD with its GRH right
// before it.
RecvShape recv_shape(const Operation& operation, std::uint32_t ring);

QueueNeeds receiver_needs(const Operation& operation);

// The receive queues of a thread: buffers, RECVs, all of them posted; a loop posts them again.
class RecvQueues {
 public:
  // Registers the buffers and posts every RECV for messages of `operation`. Throws Error.
  RecvQueues(const ThreadSetup& setup, const Operation& operation);
  RecvQueues(const RecvQueues&) = delete;
  RecvQueues& operator=(const RecvQueues&) = delete;

  RecvState& state() { return state_; }
  std::uint64_t received() const;
  std::uint64_t wrong() const { return state_.wrong; }
  std::string memory() const { return rings_.memory(); }
  bool relaxed() const { return relaxed_; }

 private:
  RecvRings rings_;
  bool relaxed_;
  PayloadChecker checker_;
  std::vector<RecvLane> queues_;
  RecvState state_;
};

// Makes the workload: registers the buffers and posts every RECV. Throws Error.
std::unique_ptr<Workload> make_receiver(const ThreadSetup& setup);

// The RECVs that immediates of WRITEs use up: no payload comes through them.
Operation recv_of_immediate(const Operation& operation);
// Makes the workload of a thread that takes the immediates of WRITEs.
std::unique_ptr<Workload> make_immediate_receiver(const ThreadSetup& setup);

// The shape of a receiver that posts RECVs in lists, for the model. Throws Error when its lists do not keep whole
// groups of RECVs at hand.
VerbShape listed_recv_shape(const ClusterWire& cluster, const Operation& operation, int ports);

// The closed-form model of a receiver that posts RECVs in lists. Throws Error when its lists do not keep whole groups
// of RECVs at hand.
Prediction predict_listed_receiver(const ClusterWire& cluster, const Operation& operation, int ports);

}  // namespace verbscope
