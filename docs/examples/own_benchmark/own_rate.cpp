// A benchmark of one's own: inbound SENDs, measured at the clients that post them, where recv_rate measures the server that
// receives them.
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/run/runner.hpp"

namespace {

using namespace verbscope;

class OwnRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"own_rate", "Rate of SENDs to a machine, measured at those who post them.", "-c UC -s 32 -I 32"};
  }

  Plan draft() const override {
    return {.operation = {.driver = Side::client, .counted = Side::client, .label = "SEND in"}};
  }

  QueueNeeds needs(const Operation& operation, Side side) const override {
    return side == Side::client ? sender_needs(operation) : receiver_needs(operation);
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::client ? make_sender(setup) : make_receiver(setup);
  }

  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override {
    return predict_receiver(cluster, verb_shape(operation, ports));
  }
};

}  // namespace

int main(int argc, char** argv) {
  return benchmark_main<OwnRate>(argc, argv);
}
