#include "microbench/rate/sends.hpp"

#include "common/error.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/rate/both_ways.hpp"

namespace verbscope {

Description Sends::describe() const {
  if (inbound()) {
    return {"recv_rate", "Rate of inbound SENDs over RC, UC or UD, measured at the receiver.",
            "-c UD -s 32 -I 32 --threads 4"};
  }
  return {"send_rate", "Rate of SENDs over RC, UC or UD, posted by the server or by the clients (--direction).",
          "-c UD -s 60 -I 60 -l 16 --threads 8 -q 4"};
}

void Sends::options(OptionTable& table) {
  add_direction(table, driver_);
  add_both_ways(table, both_ways_);
  table.flag("--srq", shared_,
             "--direction in: use one shared receive queue of --rx_depth per thread, instead of one per QP");
  table.integer("--recv_list", recv_list_, 1u, 1u << 20,
                "--direction in: RECVs in one ibv_post_recv (default 32, at most half of --rx_depth)");
  add_all_sizes(table, all_);
}

void Sends::adjust(Options& options) {
  if (both_ways_) {
    if (inbound()) fail_usage("--direction in: not with --bidirectional, both sides post");
    adjust_both_ways(options);
  }
  if (!inbound() && shared_) fail_usage("--srq: only with --direction in");
  if (!inbound() && recv_list_) fail_usage("--recv_list: only with --direction in");
  const std::uint32_t depth = options.rx_depth.value_or(kUsualRxDepth);
  if (recv_list_ && *recv_list_ > depth) {
    fail_usage("--recv_list {} is more than the receive queue holds (--rx_depth {})", *recv_list_, depth);
  }
}

std::vector<std::uint32_t> Sends::points(const Options& options) const {
  return all_ ? all_sizes(options) : std::vector<std::uint32_t>();
}

Plan Sends::draft() const {
  return {.operation = {.driver = driver_,
                        .recv_list = recv_list_.value_or(0),
                        .shared_recv_queue = shared_,
                        .label = both_ways_  ? "SEND both ways"
                                 : inbound() ? "SEND in"
                                             : "SEND out",
                        .both_ways = both_ways_}};
}

QueueNeeds Sends::needs(const Operation& operation, Side side) const {
  if (both_ways_) return both_needs(operation);
  return side == driver_ ? sender_needs(operation) : receiver_needs(operation);
}

std::unique_ptr<Workload> Sends::setup(const ThreadSetup& setup) const {
  if (both_ways_) return make_sender(setup, {.receives = true});
  return setup.side == driver_ ? make_sender(setup) : make_receiver(setup);
}

Prediction Sends::predict(const ClusterWire& cluster, const Operation& operation, int ports) const {
  return predict_run(cluster, operation, ports, Json::object());
}

Prediction Sends::predict_run(const ClusterWire& cluster, const Operation& operation, int ports,
                              const Json& result) const {
  if (inbound()) return predict_listed_receiver(cluster, operation, ports);
  const Prediction out = predict_requester(cluster, verb_shape(operation, ports));
  if (!both_ways_) return out;
  return predict_both_ways(out, predict_listed_receiver(cluster, operation, ports), result);
}

}  // namespace verbscope
