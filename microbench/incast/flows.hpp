// The workloads of incast_rate: senders of flows, and receivers that answer messages of UC and UD.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

struct FlowOptions {
  std::uint32_t window = 32;  // operations outstanding on a QP
  bool together = false;      // a window of all flows must be over before the next is begun
  Picos give_up{0};           // a datagram without an answer for so long is lost
};

// Whether operations end by answers: nobody acknowledges them.
bool needs_answers(const Operation& op);

// Bytes of a target's memory that each flow has.
std::uint64_t flow_stride(const Operation& op);

std::unique_ptr<Workload> make_flow_sender(const ThreadSetup& setup, const FlowOptions& options);
// Throws Error when the receive queue is too short for what all senders may have outstanding.
std::unique_ptr<Workload> make_flow_answerer(const ThreadSetup& setup, const FlowOptions& options);

// What the threads of a node found beside their rate: the keys flow_ops (a number each flow), lost and round trips,
// packed; nothing where they sent no flows.
Json flow_results(const std::vector<const Workload*>& threads);

// Makes keys of the result of all nodes: goodput_gbit_per_s of the flows (mean, least, most), their fairness by Jain's
// index, lost, and the round trips. `own`: the server sent, not the clients.
void join_flows(Json& result, std::uint32_t payload, bool own);

}  // namespace verbscope
