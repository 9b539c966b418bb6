#include "microbench/bench/benchmark.hpp"

#include "common/error.hpp"

namespace verbscope {

std::optional<OperationCount> Benchmark::operation_count() const {
  const Operation op = draft().operation;
  if (op.both_ways) return OperationCount{std::nullopt, "messages_sent"};
  return OperationCount{op.counted, op.counted == op.driver ? "messages_sent" : "messages_received"};
}

Json Benchmark::results(const std::vector<const Workload*>& /*threads*/) const {
  return Json::object();
}

VerbShape verb_shape(const Operation& op, int ports) {
  VerbShape shape;
  shape.verb = op.verb;
  shape.transport = op.transport;
  shape.payload = Bytes(op.payload);
  shape.header_only = op.header_only;
  shape.immediate = op.immediate;
  shape.inlined = op.inlined;
  shape.max_inline_cap = Bytes(op.inline_limit);
  shape.post_list = static_cast<int>(op.post_list);
  shape.signal_every = static_cast<int>(op.signal_every);
  shape.send_queue_depth = static_cast<int>(op.tx_depth);
  shape.recv_queue_depth = static_cast<int>(op.rx_depth);
  shape.max_inline_recv = Bytes(op.inline_recv);
  shape.inline_recv = op.inline_recv > 0 && op.payload <= op.inline_recv;
  shape.shared_recv_queue = op.shared_recv_queue;
  shape.ports_used = ports;
  return shape;
}

void check_recv_groups(const ClusterWire& cluster, const Operation& op, std::uint64_t posted, std::uint64_t in_use) {
  const std::uint64_t group = recv_group(cluster, verb_shape(op, 1));
  if (posted >= in_use + group) return;
  fail("{} RECVs are too few: the adapter fetches groups of {}, and up to {} are in use; raise --rx_depth to {}",
       posted, group, in_use, in_use + group);
}

}  // namespace verbscope
