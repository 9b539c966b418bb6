// The two SEND benchmarks as objects, for tests that do not start a program.
#pragma once

#include "microbench/benchmark.hpp"
#include "microbench/options.hpp"
#include "microbench/receiver.hpp"
#include "microbench/sender.hpp"

namespace verbscope::test {

class SendBenchmark final : public Benchmark {
 public:
  explicit SendBenchmark(bool server_sends) : server_sends_(server_sends) {}
  Description describe() const override { return {"test_rate", "For tests.", server_sends_, "SEND"}; }
  QueueNeeds needs(const Operation& operation, Side side) const override {
    return sends(side) ? sender_needs(operation) : receiver_needs(operation);
  }
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return sends(setup.side) ? make_sender(setup) : make_receiver(setup);
  }
  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override {
    VerbShape shape = verb_shape(operation, ports);
    if (server_sends_) return predict_requester(cluster, shape);
    shape.post_list = static_cast<int>(recv_list(operation.rx_depth));
    return predict_receiver(cluster, shape);
  }

 private:
  bool sends(Side side) const { return (side == Side::server) == server_sends_; }
  bool server_sends_;
};

// Options with the table that they stand in.
struct OptionSet {
  CLI::App app;
  Options options;
  OptionTable table{app};
  explicit OptionSet(const std::string& line) {
    add_common_options(table, options);
    app.add_option("host", options.host);
    app.parse(line);
    check_options(options);
  }
};

}  // namespace verbscope::test
