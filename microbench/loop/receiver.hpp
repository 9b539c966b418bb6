// The workload of a thread that receives: the loop of recv_loop.hpp over prebuilt RECVs.
#pragma once

#include <cstdint>
#include <memory>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// RECVs are posted in lists, unless asked otherwise of 32, or of half of a shallow queue. The queue holds whole lists.
inline constexpr std::uint32_t kRecvList = 32;
constexpr std::uint32_t recv_list(std::uint32_t depth) {
  return depth / 2 >= kRecvList ? kRecvList : depth < 2 ? 1 : depth / 2;
}
constexpr std::uint32_t recv_list(const Operation& operation) {
  return operation.recv_list != 0 ? operation.recv_list : recv_list(operation.rx_depth);
}

// How receive buffers lie: a payload begins on a cache line, on UD with its GRH right before it.
struct RecvLayout {
  std::uint64_t payload_offset = 0;  // bytes from the beginning of a place to its payload
  std::uint32_t headroom = 0;        // bytes of the GRH before the payload
  std::uint64_t stride = 0;          // bytes from a place to the next
  std::uint32_t places = 0;
};
RecvLayout recv_layout(const Operation& operation, std::uint32_t ring);

QueueNeeds receiver_needs(const Operation& operation);

// Makes the workload: registers the buffers and posts every RECV. Throws Error.
std::unique_ptr<Workload> make_receiver(const ThreadSetup& setup);

// The closed-form model of a receiver that posts RECVs in lists. Throws Error when its lists do not keep whole groups
// of RECVs at hand.
Prediction predict_listed_receiver(const ClusterWire& cluster, const Operation& operation, int ports);

}  // namespace verbscope
