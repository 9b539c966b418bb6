// Outbound SEND: the server's threads send, the clients receive. The rate is that of the server's completions.
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/run/runner.hpp"

namespace verbscope {

namespace {

class SendRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"send_rate", "Rate of outbound SENDs over RC, UC or UD, measured where they are posted.",
            "-c UD -s 60 -I 60 -l 16 --threads 8 -q 4"};
  }

  Traffic traffic() const override {
    Traffic traffic;
    traffic.driver = Side::server;
    traffic.label = "SEND out";
    return traffic;
  }

  QueueNeeds needs(const Operation& operation, Side side) const override {
    return side == Side::server ? sender_needs(operation) : receiver_needs(operation);
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::server ? make_sender(setup) : make_receiver(setup);
  }

  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override {
    return predict_requester(cluster, verb_shape(operation, ports));
  }
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::SendRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
