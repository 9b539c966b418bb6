// Outbound SEND: the server's threads send, the clients receive. The rate is that of the server's completions.
#include "microbench/bench/all_sizes.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/rate/both_ways.hpp"
#include "microbench/run/runner.hpp"

namespace verbscope {

namespace {

class SendRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"send_rate", "Rate of outbound SENDs over RC, UC or UD, measured where they are posted.",
            "-c UD -s 60 -I 60 -l 16 --threads 8 -q 4"};
  }

  void options(OptionTable& table) override {
    add_both_ways(table, both_ways_);
    add_all_sizes(table, all_);
  }

  void adjust(Options& options) override {
    if (both_ways_) adjust_both_ways(options);
  }

  std::vector<std::uint32_t> points(const Options& options) const override {
    return all_ ? all_sizes(options) : std::vector<std::uint32_t>();
  }

  Traffic traffic() const override {
    Traffic traffic;
    traffic.driver = Side::server;
    traffic.both_ways = both_ways_;
    traffic.label = both_ways_ ? "SEND both ways" : "SEND out";
    return traffic;
  }

  QueueNeeds needs(const Operation& operation, Side side) const override {
    if (both_ways_) return both_needs(operation);
    return side == Side::server ? sender_needs(operation) : receiver_needs(operation);
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    if (both_ways_) return make_sender(setup, {.receives = true});
    return setup.side == Side::server ? make_sender(setup) : make_receiver(setup);
  }

  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override {
    return predict_run(cluster, operation, ports, Json::object());
  }

  Prediction predict_run(const ClusterWire& cluster, const Operation& operation, int ports,
                         const Json& result) const override {
    const Prediction out = predict_requester(cluster, verb_shape(operation, ports));
    if (!both_ways_) return out;
    return predict_both_ways(out, predict_listed_receiver(cluster, operation, ports), result);
  }

 private:
  bool both_ways_ = false;
  bool all_ = false;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::SendRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
