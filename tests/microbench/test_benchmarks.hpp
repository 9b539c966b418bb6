// The two SEND benchmarks as objects, for tests that do not start a program.
#pragma once

#include <CLI/CLI.hpp>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/rate/one_sided.hpp"

namespace verbscope::test {

class SendBenchmark : public Benchmark {
 public:
  explicit SendBenchmark(bool server_sends) : server_sends_(server_sends) {}
  Description describe() const override { return {"test_rate", "For tests."}; }
  Plan draft() const override {
    return {.operation = {.driver = server_sends_ ? Side::server : Side::client},
            .topology = {.clients_may_leave = clients_may_leave}};
  }
  QueueNeeds needs(const Operation& operation, Side side) const override {
    return sends(side) ? sender_needs(operation) : receiver_needs(operation);
  }
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return sends(setup.side) ? make_sender(setup) : make_receiver(setup);
  }
  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override {
    VerbShape shape = verb_shape(operation, ports);
    if (server_sends_) return predict_requester(cluster, shape);
    shape.post_list = static_cast<int>(recv_list(operation));
    return predict_receiver(cluster, shape);
  }

  bool clients_may_leave = false;

 private:
  bool sends(Side side) const { return (side == Side::server) == server_sends_; }
  bool server_sends_;
};

// WRITEs or READs with every option that there is for them.
class OneSidedBenchmark final : public OneSided {
 public:
  OneSidedBenchmark() : OneSided(Verb::write) {}
  Description describe() const override { return {"test_one_sided", "For tests."}; }
  void options(OptionTable& table) override {
    add_verb(table, true);
    add_direction(table);
    add_bidirectional(table);
    add_outstanding(table);
    add_region(table);
    add_order(table);
    table.flag("--everybody", both_sides_, "");
  }
};

// Options with the table that they stand in.
struct OptionSet {
  CLI::App app;
  Options options;
  OptionTable table{app};
  // The set has the options of `benchmark` too, which must outlive it.
  explicit OptionSet(const std::string& line, Benchmark* benchmark = nullptr) {
    add_common_options(table, options);
    if (benchmark != nullptr) benchmark->options(table);
    app.add_option("host", options.host);
    app.parse(line);
    if (benchmark != nullptr) benchmark->adjust(options);
    check_options(options);
  }
};

}  // namespace verbscope::test
