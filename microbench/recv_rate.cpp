// Inbound SEND and RECV: the clients send, the server's threads receive. The rate is that of the messages that arrive.
#include "microbench/receiver.hpp"
#include "microbench/runner.hpp"
#include "microbench/sender.hpp"

namespace verbscope {

namespace {

class RecvRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"recv_rate", "Rate of inbound SENDs over RC, UC or UD, measured where they are received.", false,
            "SEND in"};
  }

  QueueNeeds needs(const Operation& operation, Side side) const override {
    return side == Side::server ? receiver_needs(operation) : sender_needs(operation);
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::server ? make_receiver(setup) : make_sender(setup);
  }

  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override {
    VerbShape shape = verb_shape(operation, ports);
    shape.verb = Verb::recv;
    shape.post_list = static_cast<int>(recv_list(operation.rx_depth));
    return predict_receiver(cluster, shape);
  }
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::RecvRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
